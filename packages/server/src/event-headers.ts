/** What every event about a document says of its cause: who, as which identity, through which endpoint. */
import type { Actor } from './actor.ts'

export function headersOf(
  { personId, identity, endpoint, traceparent }: Actor,
  { workspaceProvider }: { readonly workspaceProvider: string },
  logId?: string,
): Record<string, string> {
  const headers: Record<string, string> = { identity, endpoint, provider: workspaceProvider }
  if (personId !== null) headers.actor = personId
  if (logId !== undefined) headers.log = logId
  if (traceparent !== undefined) headers.traceparent = traceparent
  return headers
}
