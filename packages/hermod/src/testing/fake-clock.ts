/**
 * Replaces the database's clock for tests: leases, due times and retention follow it. One clock per
 * database; `restore` brings the real one back.
 */
import { type Database, select } from '../database.ts'

export interface FakeClock {
  now(): Promise<Date>
  /** Moves time forward (or back) and lets it run on from there. */
  advance(ms: number): Promise<void>
  restore(): Promise<void>
}

const INSTALL = `
  create table if not exists outbox.fake_clock (only_row boolean primary key default true, ahead interval not null);
  insert into outbox.fake_clock (ahead) values ('0') on conflict (only_row) do update set ahead = '0';
  create or replace function outbox.clock() returns timestamptz language sql volatile
    return clock_timestamp() + (select f.ahead from outbox.fake_clock f);`

const RESTORE = `
  create or replace function outbox.clock() returns timestamptz language sql volatile parallel safe
    return clock_timestamp();
  drop table if exists outbox.fake_clock;`

export async function fakeClock(db: Database): Promise<FakeClock> {
  await db.query(INSTALL)
  return {
    async now() {
      const [row] = await select(db, `select (extract(epoch from outbox.clock()) * 1000)::bigint::text as ms`)
      return new Date(Number(row?.ms))
    },
    async advance(ms) {
      await select(db, `update outbox.fake_clock set ahead = ahead + $1 * interval '1 millisecond'`, [ms])
    },
    async restore() {
      await db.query(RESTORE)
    },
  }
}
