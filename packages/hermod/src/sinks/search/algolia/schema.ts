/** A declaration as the settings of an index in Algolia. */

import type { ResolvedDefinition, ResolvedField } from '../check-definition.ts'
import { isNumeric } from '../check-request.ts'
import type { AlgoliaSettings } from './api.ts'

/** Searching and sorting reach so many documents of what was found. */
export const reachMax = 10_000
export const facetValuesMax = 100

/** PostgreSQL's names of languages, which declarations use, as codes: those Algolia knows. */
const LANGUAGES: Readonly<Record<string, string>> = {
  arabic: 'ar',
  armenian: 'hy',
  basque: 'eu',
  catalan: 'ca',
  danish: 'da',
  dutch: 'nl',
  english: 'en',
  finnish: 'fi',
  french: 'fr',
  german: 'de',
  greek: 'el',
  hindi: 'hi',
  hungarian: 'hu',
  indonesian: 'id',
  irish: 'ga',
  italian: 'it',
  lithuanian: 'lt',
  norwegian: 'no',
  portuguese: 'pt',
  romanian: 'ro',
  russian: 'ru',
  spanish: 'es',
  swedish: 'sv',
  tamil: 'ta',
  turkish: 'tr',
}

/** Where a field of the document lies in the record. */
export const fieldPath = (name: string) => `document.${name}`
export const numberPath = (name: string) => `numbers.${name}`

export function settingsOf({ language, fields }: ResolvedDefinition): AlgoliaSettings {
  const code = LANGUAGES[language]
  const languages = code === undefined ? [] : [code]
  const hidden = fields.filter(({ displayed }) => !displayed).map(({ name }) => fieldPath(name))
  return {
    searchableAttributes: searchable(fields),
    attributesForFaceting: [
      'filterOnly(keys)',
      ...fields.filter(({ facet }) => facet).map(({ name }) => fieldPath(name)),
    ],
    numericAttributesForFiltering: ['deletedAt', ...fields.filter(isNumeric).map(({ name }) => numberPath(name))],
    unretrievableAttributes: ['keys', 'identifiers', ...hidden],
    // What was typed rightly, then where it was found, then the newest.
    customRanking: ['desc(version)'],
    disableTypoToleranceOnAttributes: ['identifiers'],
    indexLanguages: languages,
    queryLanguages: languages,
    ignorePlurals: code ? languages : false,
    removeStopWords: code ? languages : false,
    advancedSyntax: true,
    typoTolerance: true,
    maxValuesPerFacet: facetValuesMax,
    paginationLimitedTo: reachMax,
  }
}

/** By weight; an empty list would search everything, also what is only to be filtered. */
function searchable(fields: readonly ResolvedField[]): string[] {
  const weights = [4, 3, 2, 1].map((weight) => {
    const names = fields
      .filter((field) => field.weight === weight && field.kind !== 'identifier')
      .map(({ name }) => fieldPath(name))
    return weight === 4 ? ['identifiers', ...names] : names
  })
  return weights
    .filter((names) => names.length > 0)
    .map((names) => (names.length === 1 ? `unordered(${names[0]})` : names.join(',')))
}
