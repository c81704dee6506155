/**
 * once: the inbox of a consumer. A message is handled in the same transaction that remembers it, so a
 * repeated delivery does nothing.
 */
import { asTx } from './clients/client.ts'
import { HermodError } from './errors.ts'

const REMEMBER = `insert into outbox.inbox (consumer, message_id) values ($1::text, $2::text)
  on conflict do nothing returning message_id`

/** Undefined: this consumer has handled the message before. */
export async function once<T>(
  client: unknown,
  consumer: string,
  messageId: string,
  work: () => Promise<T>,
): Promise<T | undefined> {
  check('consumer', consumer, 128)
  check('messageId', messageId, 512)
  const rows = await asTx(client).query(REMEMBER, [consumer, messageId])
  return rows.length === 0 ? undefined : work()
}

function check(field: string, value: string, bytesMax: number): void {
  const bytes = typeof value === 'string' ? Buffer.byteLength(value) : 0
  if (bytes >= 1 && bytes <= bytesMax) return
  throw new HermodError('HMD_OPTION_INVALID', `${field} must have 1 to ${bytesMax} bytes`, {
    field,
  })
}
