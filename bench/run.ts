// npm run bench [-- --only store,journal,… --quick]: every figure beside a baseline that was measured in turn with it; ratios
// are what to read. Needs a build (`npm run build`) for all but `store` and `journal`. See README.md.
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { benchAgents } from './agents.js'
import { benchAutomation } from './automation.js'
import { benchBundles } from './bundles.js'
import { benchCli } from './cli.js'
import { buildPrograms, type Context, temporaryFolder } from './context.js'
import { benchDoor } from './door.js'
import { benchExtensionHost } from './extension-life.js'
import { benchExtensions } from './extensions.js'
import { benchJournal } from './journal.js'
import { benchKernel } from './kernel.js'
import { median, ms } from './measure.js'
import { installNative } from './native.js'
import { benchPut } from './put.js'
import { benchRecovery } from './recovery.js'
import { Report } from './report.js'
import { benchSessions, benchStoredSessions } from './sessions.js'
import { benchStart } from './start.js'
import { benchStore } from './store.js'

const SECTIONS: Readonly<Record<string, readonly ((context: Context) => Promise<void>)[]>> = {
  store: [benchStore, benchRecovery],
  journal: [benchJournal],
  put: [benchPut],
  tcp: [benchDoor],
  start: [benchStart],
  kernel: [benchKernel],
  agents: [benchAgents],
  automation: [benchAutomation],
  bundles: [benchBundles],
  sessions: [benchSessions, benchStoredSessions],
  cli: [benchCli],
  extensions: [benchExtensions, benchExtensionHost],
}

/** Median of a write and sync of 4 KiB in milliseconds: over what is there, or behind it. */
function syncP50(temp: string, appended: boolean): number {
  const file = openSync(path.join(temp, 'sync'), 'w')
  const page = Buffer.alloc(4096)
  writeSync(file, page, 0, page.length, 0)
  fdatasyncSync(file)
  const times = Array.from({ length: 300 }, (_, i) => {
    const began = performance.now()
    writeSync(file, page, 0, page.length, appended ? (i + 1) * page.length : 0)
    fdatasyncSync(file)
    return performance.now() - began
  })
  closeSync(file)
  return median(times)
}

const { values } = parseArgs({ options: { only: { type: 'string' }, quick: { type: 'boolean', default: false } } })
const chosen = values.only?.split(',') ?? Object.keys(SECTIONS)
const unknown = chosen.find(name => SECTIONS[name] === undefined)
if (unknown !== undefined) {
  console.error(`no section ${unknown}; there are ${Object.keys(SECTIONS).join(', ')}`)
  process.exit(2)
}

const began = performance.now()
const bench = path.dirname(fileURLToPath(import.meta.url))
const root = path.join(bench, '..')
const temp = temporaryFolder()
const report = new Report()
const why = chosen.includes('store') ? installNative(bench) : 'not needed'
const program = await buildPrograms(root)
const load = os.loadavg()[0]?.toFixed(1)
const [over, behind] = [syncP50(temp, false), syncP50(temp, true)]
console.log(`node ${process.version}, ${os.cpus().length} cores, load ${load}${values.quick ? ', quick' : ''}`)
console.log(`raw write and fdatasync of 4 KiB, p50: ${ms(over)} in place, ${ms(behind)} appended; in ${os.tmpdir()}`)
if (chosen.includes('store') && why !== undefined) report.skip('better-sqlite3', why)
for (const name of chosen)
  for (const section of SECTIONS[name] ?? [])
    await section({ root, bench, temp, report, quick: values.quick, native: why === undefined, program })
report.end()
console.log(`${((performance.now() - began) / 1000).toFixed(0)} s; load ${os.loadavg()[0]?.toFixed(1)} at the end`)
process.exit(0)
