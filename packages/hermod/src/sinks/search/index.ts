/** What users and authors of search engines import from `hermod/sinks/search`. */
export * from './definition.ts'
export { documentHash } from './document-hash.ts'
export * from './engine.ts'
export { markedHtml } from './highlight.ts'
export * from './request.ts'
export { type Operation, type SearchSink, type SearchSinkOptions, searchSink } from './sink.ts'
