-- Functions of earlier routines that are gone, or whose result or parameters have changed: `create or replace` would
-- refuse these. They are found by their old form, so a second time nothing is dropped. Calls of older workers that
-- still name something of it fail, and change nothing.
do $$
declare
  old text;
begin
  select string_agg(p.oid::regprocedure::text, ', ') into old from pg_catalog.pg_proc p
   where p.pronamespace = 'outbox'::regnamespace
     and format('%s(%s) %s', p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid)) like any (
       array[
       'held(%', 'head(%', 'settle\_held(%', 'release\_held(%', 'event\_at(%',
       'number\_near(%last_id bigint%', 'number\_first(%floor bigint%', 'number\_next(%due timestamp%',
       'number\_due(%now timestamp%', 'file\_scheduled(%due timestamp%', 'claim(%expired boolean%',
       'read(%heads text%', 'read\_lanes(%heads text%', 'read\_single(%heads text%', 'read\_due(%head text%',
       'replay\_read(%heads text%', 'hold(%timestamp with time zone', 'unprobe(%boolean', 'enlist(%) integer',
       'pass\_idle(%) integer', 'release(%) SETOF smallint', 'read(%filled boolean[] DEFAULT NULL::boolean[]) %',
       'settle\_done(%up_to bigint%', 'settle\_row(%up_to bigint%', 'settle\_rows(%up_to bigint%', 'again\_events(%',
       'enlist\_rows(%hashes integer[], attempts_max%']);
  if old is not null then
    execute 'drop function ' || old;
  end if;
end $$;
