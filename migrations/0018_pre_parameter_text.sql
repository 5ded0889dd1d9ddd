-- Lists of parameters are kept as the text they came as: nobody looks into them but who reads a chunk whole, and a million
-- values are stored in a fifth of the time that taking them apart and packing them takes.

alter table parameter alter column columns type text using columns::text;
alter table parameter alter column columns set storage external;
