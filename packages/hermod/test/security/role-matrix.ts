// The rights of every role on every object of the schema `outbox`, read from the catalogue and
// written as text that can be checked in.

import type pg from 'pg'

const RIGHTS = `
  with granted as (
    select format('%s %s', case c.relkind when 'v' then 'view' when 'S' then 'sequence' else 'table' end, c.relname) as object,
           a.grantee, lower(a.privilege_type) as right
      from pg_class c cross join lateral aclexplode(c.relacl) a
     where c.relnamespace = 'outbox'::regnamespace
    union all
    select format('table %s', c.relname), a.grantee, format('%s(%s)', lower(a.privilege_type), t.attname)
      from pg_class c join pg_attribute t on t.attrelid = c.oid cross join lateral aclexplode(t.attacl) a
     where c.relnamespace = 'outbox'::regnamespace
    union all
    select format('function %s', p.proname), a.grantee, 'execute'
      from pg_proc p cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     where p.pronamespace = 'outbox'::regnamespace
    union all
    select 'schema outbox', a.grantee, lower(a.privilege_type)
      from pg_namespace n cross join lateral aclexplode(n.nspacl) a where n.nspname = 'outbox')
  select g.object, coalesce(r.rolname, 'public') as role, string_agg(distinct g.right, ' ' order by g.right) as rights
    from granted g left join pg_roles r on r.oid = g.grantee
   where g.grantee = 0 or r.rolname like 'hermod\\_%'
   group by 1, 2 order by 1, 2`

/** One line per object and role: `function emit | hermod_producer | execute`. */
export async function roleMatrix(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query(RIGHTS)
  const lines = rows.map(({ object, role, rights }) => `${object} | ${role} | ${rights}`)
  return `${lines.join('\n')}\n`
}
