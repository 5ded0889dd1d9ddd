-- name: record
-- Write down what an operator ordered.
insert into operator_order (operator, action, subject, reason) values ($1, $2, $3, $4);

-- name: latest
-- What operators ordered last, newest first.
select operator_order_id, ordered_at, operator, action, subject, reason from operator_order
order by operator_order_id desc limit $1;

-- name: forget
-- Orders of long ago.
delete from operator_order where ordered_at < now() - make_interval(secs => $1);
