/** What emitting and reading need to know of declared event types. */
export interface EventDefinitions {
  readonly types: readonly string[]
  /** The version to store; refuses types and versions that are not declared. */
  resolve(type: string, version: number | undefined, at?: string): number
  /** Runs `parse` over what a reader will see. */
  verify(type: string, version: number, payloadText: string, where: string): void
  /** Brings a stored payload to the current version. */
  read(type: string, version: number, payload: unknown): unknown
}
