/** What users and authors of search engines import from `hermod/sinks/search`. */
export type {
  DateField,
  FieldDefinition,
  IdentifierField,
  IndexDefinition,
  KeywordField,
  NumberField,
  StoredField,
  TextField,
  Weight,
} from './definition.ts'
export { documentHash } from './document-hash.ts'
export type {
  Call,
  Deletion,
  EnsuredIndex,
  Generation,
  Health,
  MaybeParked,
  ParkingWrite,
  Read,
  ScannedDocument,
  ScannedPage,
  ScanPage,
  SearchEngine,
  StoredDocument,
  Upsert,
  Write,
} from './engine.ts'
export { markedHtml } from './highlight.ts'
export type {
  AnyOf,
  Bound,
  FacetCount,
  Filter,
  Filters,
  HighlightPart,
  Hit,
  NoneOf,
  Range,
  SearchRequest,
  SearchResult,
  Sort,
  Value,
} from './request.ts'
export { type Operation, type SearchSink, type SearchSinkOptions, searchSink } from './sink.ts'
