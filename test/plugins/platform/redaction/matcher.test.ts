// timeout: 180s
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { SecretSet } from '../../../../kernel/kit/secret-set.js'
import type { Fault } from '../../../../kernel/plugin.js'
import { folded, secretForms } from '../../../../plugins/platform/redaction/forms.js'
import { SecretMatcher } from '../../../../plugins/platform/redaction/matcher.js'
import { processorMs } from '../../../harness/processor-time.js'
import { leakOf, writingsOf } from '../../../harness/secret-writings.js'
import { chance } from '../../../proofs/library/chance.js'

const SEED = process.env.SEED ?? '1'
/** Values that need every kind of escaping, and none. */
const VALUES = ['plain-Value_0123456789', 'p"a\\ss/wörd\t€ & <ü> =+ 🔑 end', 'Zm9vYmFyYmF6cXV4', 'ÄÖÜäöüßé']

const matcherOf = (...values: string[]) => {
  const matcher = new SecretMatcher()
  for (const value of values) matcher.add(value)
  return matcher
}

const streamed = (matcher: SecretMatcher, pieces: readonly string[]) => {
  const stream = matcher.stream()
  return pieces.map(piece => stream.push(piece)).join('') + stream.end()
}

for (const value of VALUES) {
  test(`every encoding of ${JSON.stringify(value)} is replaced, wherever it is split`, () => {
    const matcher = matcherOf(value)
    for (const [name, writing] of Object.entries(writingsOf(value))) {
      const text = `x=${writing};`
      const whole = matcher.replace(text)
      assert.match(whole, '[redacted]', name)
      assert.ok(leakOf(whole, writing) <= 3, `${name}: ${whole}`)
      assert.is(
        streamed(
          matcher,
          [...text].flatMap(one => one.split('')),
        ),
        whole,
        `${name} in single characters`,
      )
      for (let at = 0; at <= text.length; at++)
        assert.is(streamed(matcher, [text.slice(0, at), text.slice(at)]), whole, `${name} split at ${at}`)
    }
  })
}

/** A value as tools print it that break its digits into lines and groups. */
function brokenWritingsOf(value: string): Readonly<Record<string, string>> {
  const inFile = Buffer.from(`{"user": "root", "key": "${value}", "more": "of the same"}`)
  const lines = (digits: string, width: number, end: string) =>
    digits.match(new RegExp(`.{1,${width}}`, 'g'))!.join(end)
  const base64 = inFile.toString('base64')
  const hex = Buffer.from(value).toString('hex')
  const pairs = hex.match(/../g)!
  return {
    'base64 of 76': lines(base64, 76, '\n'),
    'openssl base64': lines(base64, 64, '\n'),
    'base64 with CRLF': lines(base64, 64, '\r\n'),
    'base64, indented': lines(base64, 40, '\n    '),
    'base64 in JSON': lines(base64, 64, '\\n'),
    'base64url of 20': lines(inFile.toString('base64url'), 20, '\n'),
    'hex with blanks': pairs.join(' '),
    'HEX with colons': pairs.join(':').toUpperCase(),
    'hex with dashes': pairs.join('-'),
    'hex in fours': hex.match(/.{1,4}/g)!.join(' '),
    'hex of 60 a line': lines(hex, 20, '\n'),
    'hex of an array': pairs.map(pair => `0x${pair}`).join(', '),
    'hex of a string': pairs.map(pair => `\\x${pair}`).join(''),
  }
}

/** Lines of `xxd` and `hexdump -C`. */
function dumpsOf(value: string): readonly string[] {
  const bytes = Buffer.from(`name: ${value}\n`)
  const rows = Array.from({ length: Math.ceil(bytes.length / 16) }, (_, at) => bytes.subarray(at * 16, at * 16 + 16))
  const shown = (row: Buffer) => row.toString('latin1').replace(/[^ -~]/g, '.')
  const offset = (at: number) => (at * 16).toString(16).padStart(8, '0')
  const groups = (row: Buffer, size: number) =>
    row
      .toString('hex')
      .match(new RegExp(`.{1,${size}}`, 'g'))!
      .join(' ')
  return [
    rows.map((row, at) => `${offset(at)}: ${groups(row, 4).padEnd(39)}  ${shown(row)}`).join('\n'),
    rows
      .map(
        (row, at) => `${offset(at)}  ${groups(row.subarray(0, 8), 2)}  ${groups(row.subarray(8), 2)}  |${shown(row)}|`,
      )
      .join('\n'),
  ]
}

const LONG = 'sk-live_51Habc7890zxywvutsrqponmlkjihgfedcba-CANARY-0123456789-and-still-more-of-it'

for (const [name, writing] of Object.entries(brokenWritingsOf(LONG))) {
  test(`${name} is replaced although its digits are wrapped, wherever it is split`, () => {
    const matcher = matcherOf(LONG)
    const text = `before it\n${writing}\nafter it`
    const whole = matcher.replace(text)
    assert.match(whole, '[redacted]')
    assert.match(whole, /^before it\n/)
    assert.match(whole, /\nafter it$/)
    assert.ok(leakOf(whole, writing) <= 70, `${name}: ${whole}`)
    assert.is(streamed(matcher, [...text]), whole, 'in single characters')
    for (let at = 0; at <= text.length; at += 7)
      assert.is(streamed(matcher, [text.slice(0, at), text.slice(at)]), whole, `split at ${at}`)
  })
}

test('a hex dump is replaced with its character column', () => {
  const matcher = matcherOf(LONG)
  for (const dump of dumpsOf(LONG)) {
    const whole = matcher.replace(`${dump}\nafter it`)
    assert.match(whole, '[redacted]')
    assert.match(whole, /\nafter it$/)
    for (let at = 0; at + 12 <= LONG.length; at++)
      assert.not(whole.includes(LONG.slice(at, at + 12)), `${LONG.slice(at, at + 12)} in ${whole}`)
  }
})

test('text similar to wrapped digits stays', () => {
  const matcher = matcherOf(LONG)
  for (const text of [
    'be ad fa ce: 12:30:45, de:ad:be:ef:00:01\n00 11 22 33 44 55 66 77',
    'import { something } from somewhere\nexport const another = somethingElse\n',
    `${'QUJDREVGR0hJSktMTU5P'.repeat(3)}\n${'QUJDREVGR0hJSktMTU5P'.repeat(3)}\n`,
  ]) {
    assert.is(matcher.replace(text), text)
    assert.is(streamed(matcher, [...text]), text)
  }
})

test('densely wrapped digits cost linear time', () => {
  const matcher = matcherOf(LONG)
  const timeOf = (count: number) => {
    const texts = ['ab\n', 'ab:', 'abcdefgh\n', 'ab  x\n00000000: ', '  ', '\\r', 'QUJDREVG'].map(one =>
      one.repeat(count),
    )
    const once = () => processorMs(() => texts.map(text => matcher.replace(text)))
    return Math.min(once(), once(), once())
  }
  timeOf(2000)
  assert.ok(timeOf(40_000) < 40 * timeOf(4000), 'ten times the text, and not a hundred times the time')
})

test('text around a value stays', () => {
  const matcher = new SecretMatcher()
  matcher.add('correct horse', { name: 'vault:mcp/github' })
  assert.is(matcher.replace('a correct horse b'), 'a [redacted:vault:mcp/github] b')
  assert.is(matcher.replace('correct horse'), '[redacted:vault:mcp/github]')
  assert.is(matcher.replace('correct hors'), 'correct hors')
  assert.is(matcher.replace(''), '')
  matcher.add('battery staple', { name: 'a ]\n b' })
  assert.is(matcher.replace('battery staple'), '[redacted:a____b]', 'a name brings no line of its own')
})

test('values in long texts are replaced, and similar ones of other characters stay', () => {
  // The characters of the second value have the lower bytes of the first.
  const [value, similar] = ['ABCDEFGHIJKL', 'ŁłŃńŅņŇňŉŊŋŌ']
  const text = 'é'.repeat(100_000)
  assert.is(matcherOf(value).replace(`${text}${similar}${value}${text}`), `${text}${similar}[redacted]${text}`)
  assert.is(matcherOf(similar).replace(`${text}${value}${similar}${text}`), `${text}${value}[redacted]${text}`)
})

test('overlapping and nested values are replaced completely', () => {
  const matcher = new SecretMatcher()
  const end = matcher.add('abcdefghij', { name: 'long' })
  matcher.add('cdefghij', { name: 'inner' })
  matcher.add('ghijklmnop', { name: 'next' })
  assert.is(matcher.replace('-abcdefghij-'), '-[redacted:long]-')
  assert.is(matcher.replace('-abcdefghijklmnop-'), '-[redacted:long]-')
  assert.is(matcher.replace('-cdefghij-'), '-[redacted:inner]-')
  assert.is(matcher.replace('-abcdefghijabcdefghij-'), '-[redacted:long][redacted:long]-')
  end()
  assert.is(matcher.replace('-abcdefghij-'), '-ab[redacted:inner]-')
})

test('a value is redacted while at least one owner registers it', () => {
  const matcher = new SecretMatcher()
  const [first, second] = [matcher.add('one-value', { name: 'a' }), matcher.add('one-value', { name: 'b' })]
  assert.is(matcher.replace('one-value'), '[redacted:a]')
  first()
  first()
  assert.is(matcher.replace('one-value'), '[redacted:b]')
  second()
  assert.is(matcher.replace('one-value'), 'one-value')
  assert.is(matcher.size, 0)
})

test('base64 in short lines is found in a text cut anywhere, as in the whole text', () => {
  const value = 'a-key-that-is-long-enough-for-some-lines'
  const matcher = matcherOf(value)
  for (const before of ['', 'x', 'xy'])
    for (const columns of [8, 9, 12, 16, 19, 20]) {
      const digits = Buffer.from(`${before}${value}`).toString('base64')
      const lines = digits.match(new RegExp(`.{1,${columns}}`, 'g')) ?? []
      for (const end of ['\n', '\r\n', '\n  ', '\\n']) {
        const text = `it says:${end}${lines.join(end)}${end}and that is all`
        const whole = matcher.replace(text)
        const which = `${columns} columns, ${before.length} before, ${JSON.stringify(end)}`
        assert.match(whole, '[redacted]', which)
        for (let at = 0; at <= text.length; at++)
          assert.is(streamed(matcher, [text.slice(0, at), text.slice(at)]), whole, `${which}, split at ${at}`)
        assert.is(streamed(matcher, [...text]), whole, `${which}, in single characters`)
      }
    }
})

test('the end of an ordinary line is held back only for the start of a value', () => {
  const stream = matcherOf('a-key-that-is-long-enough-for-some-lines').stream()
  const held = (piece: string) => [stream.push(piece), stream.held]
  for (const line of ['documentation\n', 'everything else is fine:\n', 'src/kernel/something/index.ts\n'])
    assert.equal(held(line), [line, 0])
  // One of the forms of the value begins with an E.
  assert.equal(held('SOME_VARIABLE\n'), ['SOME_VARIABL', 2])
  assert.equal(held('is on.'), ['E\nis on.', 0])
})

test('a stream holds back no more than a possible start of a value', () => {
  const matcher = matcherOf('swordfish-of-the-day')
  const stream = matcher.stream()
  const held = (piece: string) => [stream.push(piece), stream.held]
  assert.equal(held('nothing here'), ['nothing here', 0])
  assert.equal(held(' at all, sword'), [' at all, ', 5])
  assert.equal(held('s'), ['sword', 1])
  assert.equal(held('wordfish-of-the-da'), ['', 19])
  assert.equal(held('y'), ['[redacted]', 0])
  assert.equal(held('swordfish-of-the-da'), ['', 19])
  assert.is(stream.end(), 'swordfish-of-the-da')
  assert.is(stream.held, 0)
  assert.equal(held('y'), ['y', 0], 'after the end of a text another one begins')
  matcher.add('battery staple')
  assert.equal(held('batt'), ['', 4], 'a value that came meanwhile is known')
})

test('a value that is too short or long is refused by a code that does not repeat it', () => {
  const refusal = (value: string, options = {}) => {
    try {
      new SecretSet().hide(value, options)
      new SecretMatcher().add(value, options)
    } catch (error) {
      assert.ok(value === '' || !(error as Fault).message.includes(value))
      return (error as Fault).code
    }
    return undefined
  }
  assert.is(refusal(''), 'secret_too_short')
  assert.is(refusal('', { short: true }), 'secret_too_short')
  assert.is(refusal('1234567'), 'secret_too_short')
  assert.is(refusal('  1234567  '), 'secret_too_short')
  assert.is(refusal('12345678'), undefined)
  assert.is(refusal('äöüß'), undefined, 'bytes count, not characters')
  assert.is(refusal('1234', { short: true }), undefined)
  assert.is(refusal('123', { short: true }), 'secret_too_short')
  assert.is(refusal('x'.repeat(64 * 1024)), undefined)
  assert.is(refusal('x'.repeat(64 * 1024 + 1)), 'secret_too_long')
})

test('a short value is found among long ones, also when split', () => {
  const matcher = matcherOf('correct-horse')
  matcher.add('p1n4', { short: true, name: 'pin' })
  assert.is(matcher.replace('pin p1n4, correct-horse'), 'pin [redacted:pin], [redacted]')
  assert.is(streamed(matcher, ['pin p', '1', 'n4, corr', 'ect-horse']), 'pin [redacted:pin], [redacted]')
})

test('a long value is redacted in pieces, whatever part of it occurs', () => {
  const chances = chance(SEED, 'long')
  const value = Array.from({ length: 20_000 }, () => String.fromCharCode(33 + chances.int(90))).join('')
  const matcher = matcherOf(value)
  assert.is(matcher.replace(`a ${value} b`), 'a [redacted] b')
  assert.is(matcher.replace(Buffer.from(value).toString('base64')).replace(/[^[]/g, '').length, 1, 'without a gap')
  assert.ok(leakOf(matcher.replace(value.slice(5000, 9000)), value) < 512)
  const stream = matcher.stream()
  let most = 0
  for (let at = 0; at < value.length; at += 100) {
    stream.push(value.slice(at, at + 100))
    most = Math.max(most, stream.held)
  }
  assert.ok(most < 4 * 512, `${most} characters held back`)
})

test('the lines of a key are redacted one by one, as programs print them', () => {
  const line = 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7'
  const matcher = matcherOf(`-----BEGIN PRIVATE KEY-----\n${line}\n${line.toLowerCase()}x\n-----END PRIVATE KEY-----\n`)
  assert.is(matcher.replace(`key: ${line}`), 'key: [redacted]')
  assert.is(matcher.replace('-----BEGIN PRIVATE KEY-----'), '-----BEGIN PRIVATE KEY-----')
})

test('no text costs time in proportion to the values with its prefix', () => {
  const few = matcherOf('sk-proj-0')
  const many = matcherOf(...Array.from({ length: 5000 }, (_, n) => `sk-proj-${'y'.repeat(n % 300)}${n}`))
  const text = 'sk-proj-yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy '.repeat(500)
  const timeOf = (matcher: SecretMatcher) => {
    const times = Array.from({ length: 5 }, () => processorMs(() => matcher.replace(text)))
    return Math.min(...times)
  }
  timeOf(few)
  // A comparison with each of them would take thousands of times as long.
  assert.ok(timeOf(many) < 300 * Math.max(timeOf(few), 0.1))
})

/** What the matcher does, without any cleverness. */
function reference(values: readonly { value: string; name: string }[], text: string): string {
  const plain = folded(text)
  const found: { start: number; end: number; name: string }[] = []
  for (const { value, name } of values)
    for (const form of secretForms(value.trim()).keys())
      for (let at = plain.indexOf(form); at >= 0; at = plain.indexOf(form, at + 1))
        found.push({ start: at, end: at + form.length, name })
  found.sort((a, b) => a.start - b.start || b.end - a.end)
  let out = ''
  let done = 0
  for (const { start, end, name } of found) {
    if (start >= done) out += `${text.slice(done, start)}[redacted:${name}]`
    done = Math.max(done, end)
  }
  return out + text.slice(done)
}

test('the matcher finds the same as a search for each form, in one piece and in chunks', () => {
  const chances = chance(SEED, 'fuzz')
  for (let round = 0; round < 400; round++) {
    // Few letters, so that values share beginnings, contain each other and overlap by chance.
    const letters = chances.of(['ab', 'abC-_', 'a"\\/é🔑', 'ABCDEFab01+/='])
    const word = (least: number, most: number) => {
      const characters = [...letters]
      return Array.from({ length: least + chances.int(most - least) }, () => chances.of(characters)).join('')
    }
    const matcher = new SecretMatcher()
    const values: { value: string; name: string; end: () => void }[] = []
    for (let count = chances.int(12); count > 0; count--) {
      const value = chances.of([word(8, 12), word(8, 60), word(4, 9), word(1000, 1100)])
      const name = `n${count}`
      // Of one value with two names the first is shown: the reference knows no order.
      if (Buffer.byteLength(value) < 4 || values.some(other => overlapsForms(other.value, value))) continue
      values.push({ value, name, end: matcher.add(value, { name, short: true }) })
    }
    while (values.length > 0 && chances() < 0.2) values.splice(chances.int(values.length), 1)[0]?.end()
    const parts = Array.from({ length: chances.int(12) }, () => {
      const { value = '' } = values.length > 0 ? chances.of(values) : {}
      const writing = value === '' ? '' : chances.of(Object.values(writingsOf(value)))
      return chances.of([
        word(0, 20),
        writing,
        writing.slice(chances.int(6)),
        writing.slice(0, -chances.int(6) || undefined),
      ])
    })
    const text = parts.join('')
    const expected = reference(values, text)
    const where = `SEED=${SEED}, round ${round}`
    assert.is(matcher.replace(text), expected, where)
    const pieces: string[] = []
    for (let at = 0; at < text.length; ) {
      const length = chances.of([1, 1 + chances.int(5), 1 + chances.int(80)])
      pieces.push(text.slice(at, at + length))
      at += length
    }
    assert.is(streamed(matcher, pieces), expected, `${where}, in pieces`)
    for (const { end } of values) end()
    assert.is(matcher.size, 0, where)
  }
})

function overlapsForms(one: string, other: string): boolean {
  const forms = secretForms(one)
  return [...secretForms(other).keys()].some(form => forms.has(form))
}

test.run()
