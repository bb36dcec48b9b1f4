// proof, timeout: 2400s
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { type ParseError, parse } from 'jsonc-parser'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { StartedDaemon } from '../../../../testing/daemon.js'

/** Writes of each writer; 1000 for a long run. */
const ROUNDS = Number(process.env.CONTENDERS ?? 100)
/** Keys of each writer, which are changed again and again: a map of settings has a bound. */
const KEYS = 90

const read = (file: string): { text: string; value: Record<string, never> } => {
  const text = readFileSync(file, 'utf8')
  const errors: ParseError[] = []
  const value = parse(text, errors, { allowTrailingComma: true })
  assert.equal(errors, [], text)
  return { text, value }
}

const shortcutsOf = (file: string) =>
  (read(file).value as { window_manager?: { shortcuts?: Record<string, string> } }).window_manager?.shortcuts ?? {}

test('concurrent svc config set of one map lose no write and never tear the file', async () => {
  const daemon = await StartedDaemon.start({ config: '{\n  // mine\n  "http": { "port": 0 }\n}\n' })
  const file = path.join(daemon.home, 'config.json')
  let isOver = false
  const look = (async () => {
    let looks = 0
    for (; !isOver; looks++, await turn()) {
      // There is no moment without it, either.
      assert.match(read(file).text, /\/\/ mine/)
    }
    return looks
  })()
  try {
    const last: Record<string, string> = {}
    const writer = async (name: string) => {
      for (let round = 0; round < ROUNDS; round++) {
        const key = `${name}${round % KEYS}`
        const { code, stderr } = await daemon.cli('config', 'set', `window_manager.shortcuts.${key}`, `"v${round}"`)
        assert.is(code, 0, stderr)
        last[key] = `v${round}`
      }
    }
    await Promise.all([writer('a'), writer('b')])
    assert.equal(Object.entries(shortcutsOf(file)).sort(), Object.entries(last).sort())
    const { body } = await daemon.request('GET', '/api/settings/keys/window_manager.shortcuts')
    assert.equal(Object.entries((body as { value: Record<string, string> }).value).sort(), Object.entries(last).sort())
  } finally {
    isOver = true
    await daemon.stop()
  }
  assert.ok((await look) > ROUNDS)
})

test('a concurrent save of an editor is kept, or the daemon did not overwrite it', async () => {
  const daemon = await StartedDaemon.start({ config: '{\n  // save 0\n  "http": { "port": 0 }\n}\n' })
  const file = path.join(daemon.home, 'config.json')
  let saves = 0
  let isOver = false
  /**
   * The daemon swaps its file with this one and looks at what it got; a save that came in between gets its place again a moment
   * later, which is long where the daemon is not given the processor.
   */
  const lastSave = async () => {
    for (const until = Date.now() + 60_000; ; await turn()) {
      const { text } = read(file)
      if (text.includes(`// save ${saves}\n`)) return text
      assert.ok(Date.now() < until, `save ${saves} is not there again: ${text.slice(0, 40)}`)
    }
  }
  /** Reads, waits, and saves by temporary file and rename, whatever came in between: as editors do. */
  const editor = (async () => {
    for (; !isOver; await turn()) {
      const text = await lastSave()
      writeFileSync(`${file}.editor`, text.replace(`// save ${saves}\n`, `// save ${saves + 1}\n`))
      renameSync(`${file}.editor`, file)
      saves++
      // Now and then a person stops typing: on a busy machine a write of the daemon takes longer than the rest.
      await new Promise(resolve => setTimeout(resolve, saves % 20 === 0 ? 200 : saves % 7))
    }
  })()
  const refused: unknown[] = []
  let written = 0
  try {
    const writer = async (name: string) => {
      for (let round = 0; round < ROUNDS; round++) {
        const changes = [{ key: `window_manager.shortcuts.${name}${round % KEYS}`, value: `v${round}` }]
        const { status, body } = await daemon.request('PATCH', '/api/settings/keys', { changes })
        if (status === 200) written++
        else refused.push([status, (body as { code: string }).code])
      }
    }
    await Promise.race([Promise.all([writer('a'), writer('b')]), editor])
    isOver = true
    await editor
    await lastSave()
    assert.equal(
      refused.filter(one => JSON.stringify(one) !== '[409,"config_changed"]'),
      [],
    )
    assert.ok(written > 0 && saves > 0, `${written} written, ${saves} saves, ${refused.length} refused`)
  } finally {
    isOver = true
    await daemon.stop()
  }
})

test.run()
