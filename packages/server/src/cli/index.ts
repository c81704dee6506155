/** The server's commands, beside the engine's in the bin `hermod`. */
export const commands: readonly never[] = []
