/**
 * Stop words, for engines that have no list of their own, or that find nothing when a query holds only
 * such words. English only.
 */
import { finished, type Term } from './query.ts'

const ENGLISH: readonly string[] = [
  'a about above after again against all am an and any are as at be because been before being',
  'below between both but by can did do does doing down during each few for from further had has',
  'have having he her here hers herself him himself his how i if in into is it its itself just me',
  'more most my myself no nor not now of off on once only or other our ours ourselves out over own',
  'same she should so some such than that the their theirs them themselves then there these they',
  'this those through to too under until up very was we were what when where which while who whom',
  'why will with you your yours yourself yourselves',
].flatMap((line) => line.split(' '))

export function stopWordsOf(language: string): string[] {
  return language === 'english' ? [...ENGLISH] : []
}

/** The query without stop words. An unfinished word is kept: `the` may become `theory`. */
export function withoutStopWords(terms: readonly Term[], language: string): readonly Term[] {
  const stop = new Set(stopWordsOf(language))
  const kept = terms.filter(({ words, excluded, unfinished }) => {
    return excluded || unfinished || words.length > 1 || !stop.has(words[0] as string)
  })
  return kept.at(-1) === terms.at(-1) ? kept : finished(kept)
}
