-- name: record
-- Store an operator's command.
insert into operator_order (operator, action, subject, reason) values ($1, $2, $3, $4);

-- name: latest
-- The last commands of operators, newest first.
select operator_order_id, ordered_at, operator, action, subject, reason from operator_order
order by operator_order_id desc limit $1;

-- name: forget
-- Delete commands of long ago.
delete from operator_order where ordered_at < now() - make_interval(secs => $1);
