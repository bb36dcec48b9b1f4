// npm run bench [-- --only store,journal,… --quick --write --against FOLDER]: every figure beside a baseline that was measured in turn with it; ratios
// are what to read. Needs a build (`npm run build`) for all but `store` and `journal`. See README.md.
import { closeSync, existsSync, fdatasyncSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { against } from './against.js'
import { benchAgents } from './agents.js'
import { benchAudit } from './audit.js'
import { benchAutomation } from './automation.js'
import { benchBridges } from './bridges.js'
import { benchBundles } from './bundles.js'
import { benchCli } from './cli.js'
import { buildPrograms, type Sections, temporaryFolder } from './context.js'
import { benchDoor } from './door.js'
import { benchExtensionHost } from './extension-life.js'
import { benchExtensions } from './extensions.js'
import { benchGrown } from './grown.js'
import { benchHooks } from './hooks.js'
import { benchJournal } from './journal.js'
import { benchKernel } from './kernel.js'
import { median, ms } from './measure.js'
import { installNative } from './native.js'
import { benchNetwork, benchNetworkHop } from './network.js'
import { benchOverview } from './overview.js'
import { benchProcesses } from './processes.js'
import { benchPut } from './put.js'
import { benchRecovery } from './recovery.js'
import { type Figure, Report } from './report.js'
import { benchSandboxes } from './sandboxes.js'
import { benchSessions, benchStoredSessions } from './sessions.js'
import { benchSettings } from './settings.js'
import { benchStart } from './start.js'
import { benchStore } from './store.js'
import { benchTasks } from './tasks.js'
import { benchManyTasks } from './tasks-views.js'
import { benchTools } from './tools.js'
import { benchTriggers } from './triggers.js'
import { benchVault } from './vault.js'

const SECTIONS: Sections = {
  store: [benchStore, benchRecovery],
  journal: [benchJournal],
  put: [benchPut],
  tcp: [benchDoor],
  start: [benchStart],
  vault: [benchVault],
  audit: [benchAudit],
  settings: [benchSettings],
  hooks: [benchHooks],
  kernel: [benchKernel],
  agents: [benchAgents],
  automation: [benchAutomation],
  tasks: [benchTasks, benchManyTasks],
  triggers: [benchTriggers],
  overview: [benchOverview],
  bridges: [benchBridges],
  bundles: [benchBundles],
  network: [benchNetwork],
  'network-hop': [benchNetworkHop],
  sessions: [benchSessions, benchStoredSessions],
  sandboxes: [benchSandboxes],
  processes: [benchProcesses],
  tools: [benchTools],
  cli: [benchCli],
  extensions: [benchExtensions, benchExtensionHost],
  grown: [benchGrown],
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

/** Puts the figures of this run into the file, in the place of earlier ones of the same sections. */
function writeFigures(file: string, { figures }: Report): void {
  const measured = new Set(figures.map(({ section }) => section))
  const before: Figure[] = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).figures : []
  const all = [...before.filter(({ section }) => !measured.has(section)), ...figures]
  const machine = { node: process.version, cores: os.cpus().length }
  writeFileSync(file, `${JSON.stringify({ ...machine, figures: all }, undefined, 2)}\n`)
}

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    quick: { type: 'boolean', default: false },
    against: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})
const sections = values.against === undefined ? SECTIONS : against(values.against)
const chosen = values.only?.split(',') ?? Object.keys(sections)
const unknown = chosen.find(name => sections[name] === undefined)
if (unknown !== undefined) {
  console.error(`no section ${unknown}; there are ${Object.keys(sections).join(', ')}`)
  process.exit(2)
}

const began = performance.now()
const bench = path.dirname(fileURLToPath(import.meta.url))
const root = path.join(bench, '../..')
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
  for (const section of sections[name] ?? [])
    await section({ root, bench, temp, report, quick: values.quick, native: why === undefined, program })
report.end()
if (values.write) writeFigures(path.join(bench, 'last.json'), report)
console.log(`${((performance.now() - began) / 1000).toFixed(0)} s; load ${os.loadavg()[0]?.toFixed(1)} at the end`)
process.exit(0)
