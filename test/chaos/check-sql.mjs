// The invariants that only the database can answer for, as SQL. Each must return nothing but
// zeros. It knows the tables, and nothing of the code that fills them.

/** The newest cursor of every lane. A subscription with one lane reads all lanes of the log. */
export const cursors = `
  select distinct on (c.subscription, c.lane) c.subscription, c.lane, c.pos, s.lanes
    from outbox.cursor c join outbox.subscription s on s.name = c.subscription
   order by c.subscription, c.lane, c.fence desc, c.pos desc`

export const OPEN = `
  select (select count(*) from (${cursors}) c
            join outbox.log l on (c.lanes = 1 or l.lane = c.lane) and l.pos > c.pos)
       + (select count(*) from outbox.delivery where state in ('pending', 'retrying', 'sending'))
       + (select count(*) from outbox.event) - (select count(*) from outbox.log) as open`

const always = {
  'I1 committed, not in the log': `
    select count(*) as n from outbox.event e
     where pg_visible_in_snapshot(e.xid, (select snapshot from outbox.step order by id desc limit 1))
       and not exists (select from outbox.log l where l.event_id = e.id)`,
  'I2 events without their rows': `
    select count(*) as n from (select payload->>'tx' as tx, count(*) as n from outbox.event group by 1) e
      full join chaos.tx t using (tx) where e.n is distinct from t.events`,
  'I3 order in the log': `
    select count(*) as n from (
      select (e.payload->>'v')::bigint as v, e.id, lag((e.payload->>'v')::bigint) over w as v0, lag(e.id) over w as id0
        from outbox.log l join outbox.event e on e.id = l.event_id
      window w as (partition by e.aggregate_type, e.aggregate_id order by l.pos)) t
     where v <> coalesce(v0, 0) + 1 or id < id0`,
  'I5 dense and single': `
    select coalesce(max(pos) - min(pos) + 1, 0) - count(*) as holes, count(*) - count(distinct event_id) as doubles,
           (select pos from outbox.step order by id desc limit 1) - coalesce(max(pos), 0) as ahead from outbox.log`,
  'I5 one lane per aggregate': `
    select count(*) as n from (select from outbox.log l join outbox.event e on e.id = l.event_id
      group by e.aggregate_type, e.aggregate_id having count(distinct l.lane) > 1) t`,
  'I7 rows above their cursor': `
    select count(*) as n from outbox.delivery d join (${cursors}) c using (subscription, lane) where d.pos > c.pos`,
  'I8 open at the end': OPEN,
}

/** Made by the triggers of audit-sql.mjs. */
const audited = {
  'I7 fences go back': `
    select count(*) as n from (select fence, lag(fence) over w as fence0
        from chaos.lane_audit window w as (partition by subscription, lane order by n)) t
     where fence < fence0`,
  'I7 cursors go back': `
    select count(*) as n from (select pos, lag(pos) over w as pos0
        from chaos.lane_audit where pos is not null window w as (partition by subscription, lane order by n)) t
     where pos < pos0`,
  'I7 two owners of one fence': `
    select count(*) as n from (select from chaos.lane_audit where owner is not null
      group by subscription, lane, fence having count(distinct owner) > 1 or count(distinct by) > 1) t`,
  'I7 a cursor by somebody else': `
    select count(*) as n from chaos.lane_audit c
     where c.pos is not null and c.fence > 0 and not exists (
       select from chaos.lane_audit o where o.subscription = c.subscription and o.lane = c.lane
          and o.fence = c.fence and o.owner is not null and o.by = c.by)`,
}

const appendOnly = {
  'I9 append-only': `
    select coalesce(sum(n_tup_upd), 0) as updated, coalesce(sum(n_tup_del), 0) as deleted from pg_stat_user_tables
     where schemaname = 'outbox' and relid in (select inhrelid from pg_inherits
       where inhparent in ('outbox.event'::regclass, 'outbox.log'::regclass))`,
}

const status = {
  'I6 exactly one word per event and subscription': `
    select count(*) as n from (select event_id, subscription from outbox.status
      group by 1, 2 having count(*) > 1 or count(state) <> 1) t`,
}

/** The invariants that do not hold, in words. Statistics vanish in a crash: I9 needs a run without. */
export async function checkDatabase(client, { crashed = false, audit = true } = {}) {
  const hasStatus = await one(client, `select to_regclass('outbox.status') is not null as n`)
  const checks = {
    ...always,
    ...(audit && audited),
    ...(!crashed && appendOnly),
    ...(hasStatus && status),
  }
  const broken = []
  for (const [name, text] of Object.entries(checks)) {
    const { rows } = await client.query(text)
    const wrong = Object.entries(rows[0]).filter(([, value]) => Number(value ?? 0) !== 0)
    for (const [column, value] of wrong) broken.push(`${name}: ${column} = ${value}`)
  }
  return broken
}

export async function openCount(client) {
  return Number(await one(client, OPEN.replace('as open', 'as n')))
}

async function one(client, text) {
  const { rows } = await client.query(text)
  return rows[0].n
}
