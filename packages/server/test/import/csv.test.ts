// The CSV reader against every way a table can be written and cut into pieces, and a corpus of what
// spreadsheets and careless programs make.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CsvReader, type CsvRecord } from '../../src/documents/import/csv.ts'

async function read(text: string, cuts: readonly number[] = [], charsMax = 1_000_000): Promise<CsvRecord[]> {
  const reader = new CsvReader(charsMax)
  const bytes = Buffer.from(text)
  const utf8 = new TextDecoder()
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  const pieces = [0, ...places].map((from, index) => utf8.decode(bytes.subarray(from, places[index]), { stream: true }))
  const found: CsvRecord[] = []
  for (const piece of pieces) for await (const records of reader.push(piece)) found.push(...records)
  for await (const records of reader.end()) found.push(...records)
  return found
}

const fields = async (text: string) => (await read(text)).map((record) => record.fields)
const outcome = (text: string, cuts: readonly number[] = []) => read(text, cuts).catch(({ message }) => message)

describe('every table', () => {
  const cell = fc.string({ unit: fc.constantFrom('a', 'é', '𝒳', '"', ',', '\r', '\n', ' ', '') })
  const table = fc.array(fc.array(cell, { minLength: 1, maxLength: 5 }), { maxLength: 6 })
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`

  it('comes back as it was written, however it is cut', async () => {
    await fc.assert(
      fc.asyncProperty(table, fc.array(fc.nat(500)), fc.constantFrom('\n', '\r\n'), async (rows, cuts, end) => {
        const text = rows.map((row) => row.map(quoted).join(',') + end).join('')
        expect((await read(text, cuts)).map((record) => record.fields)).toEqual(rows)
      }),
    )
  })

  it('means the same in one piece and in many, even when it is no table', async () => {
    const text = fc.string({ unit: fc.constantFrom('a', '"', ',', '\r', '\n') })
    await fc.assert(
      fc.asyncProperty(text, fc.array(fc.nat(100)), async (given, cuts) => {
        expect(await outcome(given, cuts)).toEqual(await outcome(given))
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
    it(name, async () => expect(await fields(text)).toEqual(wanted))
  }

  it('text after a closing quote is taken as it stands, and the next row is whole', async () => {
    expect(await read('"a"b,c\nd,e\n')).toEqual([
      { line: 1, fields: ['"a"b', 'c'] },
      { line: 2, fields: ['d', 'e'] },
    ])
  })

  it('a quote that is never closed is said with its line', async () => {
    await expect(read('a\n"b,c\n')).rejects.toThrow(/line 2 .*never closed/)
  })

  it('lines are counted through quoted line breaks of every kind', async () => {
    const lines = async (text: string) => (await read(text)).map(({ line }) => line)
    expect(await lines('a\n"x\ny\nz"\nb\n')).toEqual([1, 2, 5])
    expect(await lines('a\r\n"x\r\ny"\r\n\r\nb\rc\r\nd\r\n')).toEqual([1, 2, 5, 6])
  })

  it('a row without end is refused at the bound, not collected', async () => {
    const header = `a${',b'.repeat(10)}\n`
    await expect(read(`${header}"${'x'.repeat(20_000)}`, [], 100)).rejects.toThrow(/line 2 .* 100 bytes/)
    await expect(read('x'.repeat(600_000))).rejects.toThrow(/line 1 .* 262144 bytes/)
    await expect(read(`${header}${','.repeat(20_000)}`)).rejects.toThrow(/line 2 has more than 1,000 columns/)
    await expect(read(','.repeat(20_000))).rejects.toThrow(/line 1 has more than 1,000 columns/)
  })
})
