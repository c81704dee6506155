/**
 * The declaration of an index: what each field is for. One declaration serves every engine; each
 * translates it into its own schema or settings.
 */

/** 4 counts most: titles. Engines that know only an order use it as the order. */
export type Weight = 1 | 2 | 3 | 4

export type FieldDefinition = TextField | IdentifierField | KeywordField | NumberField | DateField | StoredField

interface Displayed {
  /** Comes back with the hits; true when left out. */
  readonly displayed?: boolean
}

/** Words are searched: stems, prefixes, accents, typing errors. A text or a list of texts. */
export interface TextField extends Displayed {
  readonly kind: 'text'
  /** 1 when left out. */
  readonly weight?: Weight
}

/** `RFC-051` is found as `rfc 051`, `rfc051` and `rfc-0`, and filtered as it is written. */
export interface IdentifierField extends Displayed {
  readonly kind: 'identifier'
}

/** Exact values, one or a list: filtered and, with `facet`, counted. */
export interface KeywordField extends Displayed {
  readonly kind: 'keyword'
  readonly facet?: boolean
  /** Its words are searched too, with this weight. */
  readonly searchable?: Weight
}

/** Ranges and sorting. */
export interface NumberField extends Displayed {
  readonly kind: 'number'
}

/** Ranges and sorting; an ISO time with its zone, or milliseconds since 1970. */
export interface DateField extends Displayed {
  readonly kind: 'date'
}

/** Kept and displayed, never searched: anything JSON can hold. */
export interface StoredField extends Displayed {
  readonly kind: 'stored'
}

export interface IndexDefinition {
  readonly fields: Readonly<Record<string, FieldDefinition>>
  /** Stems and stop words; `english` when left out, `simple` for none. */
  readonly language?: string
}
