/** The doctor's checks of the server: identity, clocks, connections, transactions, privileges. */
import { type Database, type Row, select } from '../database.ts'
import { bad, type Examination, type Finding, warn, well } from './doctor-finding.ts'

const SKEW_MS = 1_000

const IDENTITY = `
  select i.system_identifier::text as now, st.system_identifier::text as then, st.id::text,
         (i.system_identifier <> st.system_identifier or i.database <> st.database
           or pg_snapshot_xmax(pg_current_snapshot()) < pg_snapshot_xmax(st.snapshot))::text as moved,
         (i.timeline <> nullif(st.timeline, 0))::text as new_timeline, i.timeline::text as timeline, current_user::text as me
    from outbox.identity() i left join (select * from outbox.step order by id desc limit 1) st on true`

const SEQUENCE = `
  select s.seqcache::text as cache, coalesce((q.last_value < t.fenced_id), false)::text as behind
    from pg_sequence s, outbox.event_id q, outbox.setting t where s.seqrelid = 'outbox.event_id'::regclass`

const CONNECTIONS = `
  select current_setting('max_connections') as max,
         (select count(*) from pg_stat_activity where backend_type = 'client backend')::text as used`

const OLDEST = `
  select * from (
    select format('pid %s (%s, %s)', pid, coalesce(nullif(application_name, ''), usename::text), state) as who,
           extract(epoch from clock_timestamp() - xact_start)::bigint::text as seconds, greatest(age(backend_xmin), age(backend_xid)) as age
      from pg_stat_activity where (backend_xmin is not null or backend_xid is not null) and pid <> pg_backend_pid() and backend_type = 'client backend'
    union all
    select format('prepared transaction %L', gid), extract(epoch from clock_timestamp() - prepared)::bigint::text, age(transaction)
      from pg_prepared_xacts
    union all
    select format('replication slot %s', slot_name), null, greatest(age(xmin), age(catalog_xmin)) from pg_replication_slots
     where xmin is not null or catalog_xmin is not null) t
   order by age desc limit 1`

const IDLE = `
  select count(*)::text as count, string_agg(format('pid %s (%s) for %s s', a.pid, coalesce(nullif(a.application_name, ''), a.usename::text),
           extract(epoch from clock_timestamp() - a.state_change)::bigint), ', ') as who
    from pg_stat_activity a
   where a.state like 'idle in transaction%' and a.state_change < clock_timestamp() - interval '1 minute'
     and exists (select from pg_locks l where l.pid = a.pid and l.relation = 'outbox.event'::regclass and l.mode = 'RowExclusiveLock')`

const OPEN_TO_ALL = `
  select string_agg(p.oid::regprocedure::text, ', ') as functions from pg_proc p
   cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
   where p.pronamespace = 'outbox'::regnamespace and a.grantee = 0`

async function one(db: Database, sql: string): Promise<Row> {
  return (await select(db, sql))[0] ?? {}
}

async function sequence(db: Database): Promise<Finding> {
  const { cache, behind } = await one(db, SEQUENCE)
  if (cache !== '1') {
    const says = `the sequence of event ids caches ${cache} values, so ids are not handed out in order`
    return bad(says, 'Run: alter sequence outbox.event_id cache 1')
  }
  if (behind === 'true') {
    return bad('the sequence of event ids lies behind restored events', 'Run hermod rebase.')
  }
  return well('ids are handed out one by one')
}

async function identity(db: Database): Promise<Finding> {
  const row = await one(db, IDENTITY)
  if (row.moved === 'true') {
    return bad('this database was restored or moved: nothing is numbered', 'Run hermod rebase.')
  }
  if (row.new_timeline === 'true') {
    const says = 'a new timeline: the next step starts a new epoch; a delivered tail may be lost'
    return warn(says, 'Compare the newest documents outside with the database (hermod verify).')
  }
  if (row.now === null || row.timeline === null) return refusedLooks(row)
  return well(row.id === null ? 'no step yet' : 'the cluster the log was written in')
}

const CONTROL = 'pg_control_system()'
const WAL = ['pg_current_wal_lsn()', 'pg_walfile_name(pg_lsn)']

/** Numbering goes on without them; what is noticed less is said here. */
function refusedLooks({ now, timeline, me }: Row): Finding {
  const refused: string[] = []
  const says: string[] = []
  if (now === null) {
    refused.push(CONTROL)
    says.push(`${CONTROL} is refused: a restore is noticed by transaction ids only`)
  }
  if (timeline === null) {
    refused.push(...WAL)
    says.push(`${WAL.join(' or ')} is refused: a failover that lost a tail is not noticed`)
  }
  const grant = `grant execute on function ${refused.join(', ')} to ${me}`
  const after =
    timeline === null ? ' Where that is impossible, run hermod rebase --rolled-back after every failover.' : ''
  return warn(says.join('; '), `Run: ${grant}.${after}`)
}

/** Half of the round trip is the best guess of when the server looked. */
async function clock(db: Database): Promise<Finding> {
  const beforeMs = Date.now()
  const row = await one(
    db,
    `select (extract(epoch from clock_timestamp()) * 1000)::bigint::text as ms,
            (extract(epoch from outbox.clock() - clock_timestamp()) * 1000)::bigint::text as replaced`,
  )
  const skewMs = Math.round(Number(row.ms) - (beforeMs + Date.now()) / 2)
  if (Math.abs(Number(row.replaced)) > SKEW_MS) {
    const says = `outbox.clock() differs from the server's clock by ${row.replaced} ms`
    return bad(says, 'A test replaced it; run hermod migrate on a fresh schema, or restore it.')
  }
  if (Math.abs(skewMs) <= SKEW_MS) return well(`clocks differ by ${Math.abs(skewMs)} ms`)
  const says = `this machine's clock is ${Math.abs(skewMs)} ms ${skewMs > 0 ? 'behind' : 'ahead of'} the database's`
  return warn(says, 'Run NTP on both; leases and due times follow the database.')
}

async function connections(db: Database): Promise<Finding> {
  const { max, used } = await one(db, CONNECTIONS)
  const pool = (db as { options?: { max?: number } }).options?.max
  const says = `${used} of ${max} connections in use${pool === undefined ? '' : `, this pool takes up to ${pool}`}`
  if (Number(used) + (pool ?? 0) <= Number(max) * 0.9) return well(says)
  const fix = 'Raise max_connections, lower the pools, or put PgBouncer in transaction mode between.'
  return warn(says, `${fix} Wake-ups (LISTEN) then need listen: false or a direct connection.`)
}

async function oldestTransaction(db: Database): Promise<Finding> {
  const { who, seconds, age } = await one(db, OLDEST)
  const old = Number(seconds ?? 0) > 3_600 || Number(age ?? 0) > 50_000_000
  if (!old) return well(who ? `the oldest is ${who}` : 'none holds back vacuum')
  const says = `${who} holds back vacuum: ${seconds ?? '?'} s, ${age} transactions`
  return warn(says, 'End it: everything keeps flowing, but dead rows of other tables pile up.')
}

async function idleProducers(db: Database): Promise<Finding> {
  const { count, who } = await one(db, IDLE)
  if (count === '0') return well('no producer sits idle in its transaction')
  const fix = 'Their events are not numbered until they commit. Set idle_in_transaction_session_timeout.'
  return warn(`emitted and then idle in transaction: ${who}`, fix)
}

async function privileges(db: Database): Promise<Finding> {
  const { functions } = await one(db, OPEN_TO_ALL)
  if (functions === null) return well('nothing is open to PUBLIC')
  return warn(`executable by PUBLIC: ${functions}`, 'Run: select outbox.apply_grants()')
}

export const serverChecks: readonly Examination[] = [
  { name: 'sequence', look: sequence },
  { name: 'identity', look: identity },
  { name: 'clock', look: clock },
  { name: 'connections', look: connections },
  { name: 'oldest transaction', look: oldestTransaction },
  { name: 'idle producers', look: idleProducers },
  { name: 'privileges', look: privileges },
]
