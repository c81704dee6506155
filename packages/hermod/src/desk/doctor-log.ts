/** The doctor's checks of the log: no missing events, partitions ahead, every subscription served. */
import { type Database, type Row, select } from '../database.ts'
import { bad, type DoctorOptions, type Examination, type Finding, warn, well } from './doctor-finding.ts'

/** As long as workers keep events that are told nothing else. */
const KEPT_DAYS = 7

const MISSING = `select missing::text, first_id::text, step_id::text,
  exists (select from outbox.audited)::text as audited from outbox.count_missing($1)`

const AHEAD = `
  select p.parent, (max(p.to_value) - 1 - case p.parent when 'event' then (select last_value from outbox.event_id)
           else coalesce((select pos from outbox.step order by id desc limit 1), 0) end)::text as free
    from outbox.partition p where p.parent in ('event', 'log') group by p.parent order by 1`

const UNSERVED = `
  select name, extract(epoch from outbox.clock() - served_at)::bigint::text as seconds from outbox.subscription
   where served_at < outbox.clock() - interval '1 day' and mode <> 'paused' order by 1`

const KINDS = `
  select s.kind, count(*)::text as count, string_agg(s.name, ', ') filter (where s.n <= 5) as names, s.known::text
    from (select s.name, s.kind, exists (select from outbox.worker w where s.kind = any (w.kinds) and w.heartbeat_at > l.since) as known,
                 row_number() over (partition by s.kind order by s.name) as n
            from (select outbox.clock() - interval '1 minute' as since) l cross join outbox.subscription s
           where s.kind is not null and not exists (
             select from outbox.worker w where s.name = any (w.subscriptions) and w.heartbeat_at > l.since)) s
   group by s.kind, s.known order by 1`

const HELD_BYTES = `select subscription, pg_size_pretty(held_bytes) as size from outbox.retention_report($1)
  where held_bytes > 0`

const HOLDS = `
  select name, mode, held_cause, held_says, mode_by, extract(epoch from outbox.clock() - held_since)::bigint::text as seconds
    from outbox.subscription where held_cause is not null or mode <> 'live' order by 1`

const WORKERS = `
  select count(*)::text as count, count(distinct version)::text as versions, string_agg(distinct version, ', ') as names,
         (select count(*) from outbox.subscription where mode = 'live')::text as subscriptions
    from outbox.worker where heartbeat_at > outbox.clock() - interval '1 minute'`

const OLDEST = `
  select extract(epoch from outbox.clock() - e.created_at) / 86400 as days from outbox.event e order by e.id limit 1`

const WATCHED = `
  select w.name, coalesce(bool_or(t.tgenabled = 'D'), true)::text as off from outbox.watched w
    left join pg_trigger t on t.tgrelid = w.relation and starts_with(t.tgname, '00_hermod_') group by w.name order by 1`

async function auditor(db: Database, { full = false }: DoctorOptions): Promise<Finding> {
  const [row] = await select(db, MISSING, [full])
  const all = full || row?.audited === 'false'
  if (row === undefined || row.missing !== '0') {
    const says = `${row?.missing} committed events are neither in the log nor scheduled, the first is ${row?.first_id}`
    return bad(says, 'Run hermod rebase: it numbers exactly these. Then tell us how it happened.')
  }
  // A reader cannot note how far the audit came; the next audit then reads a little more.
  const { step_id: step = null } = row
  if (step !== null) await select(db, 'select outbox.note_audited($1)', [step]).catch(() => {})
  return well(all ? 'every committed event is accounted for' : 'nothing missing since the last audit')
}

async function partitions(db: Database): Promise<Finding> {
  const [spare] = await select(
    db,
    `select count(*)::text as rows from (select id from outbox.event_default limit 100000) d`,
  ).catch(() => [] as Row[])
  const rows = await select(db, AHEAD)
  const short = rows.filter(({ free }) => Number(free) < 50_000)
  if (Number(spare?.rows ?? 0) > 0) {
    const says = `${spare?.rows} events lie in the default partition`
    return warn(says, 'Run a worker with upkeep: it adds partitions ahead; these rows stay where they are.')
  }
  if (short.length > 0) {
    const says = short.map(({ parent, free }) => `${parent} has room for ${free} rows`).join(', ')
    return warn(says, 'Run a worker with upkeep: it adds partitions ahead.')
  }
  return well('there is room ahead')
}

async function unserved(db: Database, { eventDays = KEPT_DAYS }: DoctorOptions): Promise<Finding> {
  const rows = await select(db, UNSERVED)
  if (rows.length === 0) return well('every subscription was served within a day')
  const sizes = await select(db, HELD_BYTES, [eventDays]).catch(() => [] as Row[])
  const says = rows.map(({ name, seconds }) => {
    const size = sizes.find(({ subscription }) => subscription === name)?.size
    const days = (Number(seconds) / 86_400).toFixed(1)
    return `${name}: nobody for ${days} days${size ? `, holding ${size}` : ''}`
  })
  const fix = 'Start a worker that serves it, or delete it: delete from outbox.subscription where name = …'
  return warn(says.join('; '), fix)
}

/** Made at run time: nobody has their kind of sink, or it could not make one of their settings. */
async function kinds(db: Database): Promise<Finding> {
  const rows = await select(db, KINDS)
  if (rows.length === 0) return well('every subscription made at run time is served')
  const says = rows.map(({ kind, count, names, known }) => {
    const code = known === 'true' ? 'HMD_SINK_KIND_FAILED' : 'HMD_SINK_KIND_UNKNOWN'
    const why = known === 'true' ? 'is known, but none was made of the settings of' : 'is unknown to every worker, for'
    return `${code}: the kind of sink ${kind} ${why} ${count} (${names}${Number(count) > 5 ? ', …' : ''})`
  })
  const fix = 'Register the kind where workers run (outbox.sinkKind), or change or remove these subscriptions.'
  return warn(says.join('; '), fix)
}

async function held(db: Database): Promise<Finding> {
  const rows = await select(db, HOLDS)
  if (rows.length === 0) return well('no destination is held, nothing is paused')
  const says = rows.map(({ name, mode, held_cause: cause, held_says: why, seconds }) =>
    cause === null ? `${name} is ${mode}` : `${name} is ${cause} for ${seconds} s: ${why}`,
  )
  const fix = 'Repair the destination or its credentials (probes go on by themselves); resume what is paused.'
  return warn(says.join('; '), fix)
}

async function workers(db: Database): Promise<Finding> {
  const [row] = await select(db, WORKERS)
  if (row?.count === '0' && row.subscriptions !== '0') {
    return warn('no worker has been seen for a minute', 'Start one: hermod work, or outbox.start().')
  }
  if (Number(row?.versions) > 1) {
    const fix = 'Finish the rollout; a worker with an older definition does not claim.'
    return warn(`workers of several versions: ${row?.names}`, fix)
  }
  return well(`${row?.count} workers`)
}

async function retention(db: Database, { eventDays = KEPT_DAYS }: DoctorOptions): Promise<Finding> {
  const [row] = await select(db, OLDEST)
  const days = Number(row?.days ?? 0)
  // Rows go when a twelfth of the time has passed on top of it (routines/trim.sql), and then upkeep needs a moment.
  if (days < eventDays + Math.max(2, eventDays / 12 + 1)) return well(`the oldest event is ${days.toFixed(1)} days old`)
  const sizes = await select(db, HELD_BYTES, [eventDays]).catch(() => [] as Row[])
  const who = sizes.map(({ subscription, size }) => `${subscription} (${size})`).join(', ')
  const says = `the oldest event is ${days.toFixed(1)} days old${who ? `, held by ${who}` : ''}`
  return warn(says, 'Let the subscription catch up or remove it; is a worker with upkeep running?')
}

async function watched(db: Database): Promise<Finding> {
  const [table] = await select(db, `select to_regclass('outbox.watched')::text as name`)
  const rows = table?.name ? await select(db, WATCHED) : []
  if (rows.length === 0) return well('no table is watched')
  const off = rows.filter((row) => row.off === 'true').map(({ name }) => name)
  if (off.length > 0) {
    return bad(`no trigger captures ${off.join(', ')}`, 'Install it again: outbox.watch(…).')
  }
  const names = rows.map(({ name }) => name).join(', ')
  return well(`${names}; rows written under session_replication_role = replica are not captured`)
}

export const logChecks: readonly Examination[] = [
  { name: 'auditor', look: auditor },
  { name: 'partitions', look: partitions },
  { name: 'unserved subscriptions', look: unserved },
  { name: 'kinds of sinks', look: kinds },
  { name: 'held subscriptions', look: held },
  { name: 'workers', look: workers },
  { name: 'retention', look: retention },
  { name: 'watched tables', look: watched },
]
