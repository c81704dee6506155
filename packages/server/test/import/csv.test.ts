// The CSV reader against every way a table can be written and cut into pieces, and a corpus of what
// spreadsheets and careless programs make.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CsvReader, type CsvRecord } from '../../src/documents/import/csv.ts'

function read(text: string, cuts: readonly number[] = [], charsMax = 1_000_000): CsvRecord[] {
  const reader = new CsvReader(charsMax)
  const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b)
  const pieces = [0, ...places].map((from, index) => text.slice(from, places[index]))
  return [...pieces.flatMap((piece) => reader.push(piece)), ...reader.end()]
}

const fields = (text: string) => read(text).map((record) => record.fields)

describe('every table', () => {
  const cell = fc.string({ unit: fc.constantFrom('a', 'é', '𝒳', '"', ',', '\r', '\n', ' ', '') })
  const table = fc.array(fc.array(cell, { minLength: 1, maxLength: 5 }), { maxLength: 6 })
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`

  it('comes back as it was written, however it is cut', () => {
    fc.assert(
      fc.property(table, fc.array(fc.nat(500)), fc.constantFrom('\n', '\r\n'), (rows, cuts, end) => {
        const text = rows.map((row) => row.map(quoted).join(',') + end).join('')
        expect(read(text, cuts).map((record) => record.fields)).toEqual(rows)
      }),
    )
  })

  it('means the same in one piece and in many, even when it is no table', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '"', ',', '\r', '\n') })
    fc.assert(
      fc.property(text, fc.array(fc.nat(100)), (given, cuts) => {
        expect(read(given, cuts)).toEqual(read(given))
      }),
    )
  })
})

describe('the corpus', () => {
  const corpus: [name: string, text: string, wanted: string[][]][] = [
    ['nothing', '', []],
    ['only line breaks', '\n\r\n\n', []],
    [
      'no line break at the end',
      'a,b\nc,d',
      [
        ['a', 'b'],
        ['c', 'd'],
      ],
    ],
    [
      'CRLF',
      'a,b\r\nc,d\r\n',
      [
        ['a', 'b'],
        ['c', 'd'],
      ],
    ],
    [
      'empty fields',
      ',\n,,\n',
      [
        ['', ''],
        ['', '', ''],
      ],
    ],
    [
      'an empty field before CRLF',
      'a,\r\nb,\r\n',
      [
        ['a', ''],
        ['b', ''],
      ],
    ],
    ['a quoted empty field alone', '""\n', [['']]],
    ['quotes, commas, breaks inside', '"a ""b""","c,d","e\r\nf"\n', [['a "b"', 'c,d', 'e\r\nf']]],
    ['spaces are text', ' a , b \n', [[' a ', ' b ']]],
    ['a quote inside a bare field is itself', '5" disk,x\n', [['5" disk', 'x']]],
    ['a lone CR is text', 'a\rb,c\n', [['a\rb', 'c']]],
    ['semicolons are text', 'a;b\n', [['a;b']]],
  ]
  for (const [name, text, wanted] of corpus) {
    it(name, () => expect(fields(text)).toEqual(wanted))
  }

  it('text after a closing quote is said, and the next row is whole', () => {
    const [bad, good] = read('"a"b,c\nd,e\n')
    expect(bad?.broken).toMatch(/after a closing quote/)
    expect(good).toEqual({ line: 2, fields: ['d', 'e'] })
  })

  it('a quote that is never closed is said', () => {
    expect(read('a\n"b,c\n')[1]?.broken).toMatch(/never closed/)
  })

  it('lines are counted through quoted line breaks', () => {
    expect(read('a\n"x\ny\nz"\nb\n').map(({ line }) => line)).toEqual([1, 2, 5])
  })

  it('a row without end is refused at the bound, not collected', () => {
    expect(() => read(`a\n"${'x'.repeat(200)}`, [], 100)).toThrow(/line 2 .* 100 characters/)
  })
})
