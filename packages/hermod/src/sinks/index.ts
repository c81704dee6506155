/** What authors of sinks import from `hermod/sinks`. */
export * from './sink.ts'
