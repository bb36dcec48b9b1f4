// Proves the main job of a coding agent: `npm run prove:coding -- [codex] [claude]`. On a clone of this repository, a real agent and
// a scripted model: a file is edited, its test runs after a question, the turn is steered, rewound, forked into a worktree, a child
// with fewer rights spawned, the process frozen and recovered; with each agent as it is, and in a sandbox. Prints each step,
// exits with 1 when one is not as it should be, with 2 when an agent cannot be installed.
import fs from 'node:fs'
import path from 'node:path'
import { performance } from 'node:perf_hooks'
import { install, NotInstalled, root } from '../../scripts/test-real/install.js'
import { realAgents } from '../real/agents.js'
import { codingJob, type Editing } from './coding/job.js'
import { CodingWorld } from './coding/world.js'

const MAX_WHY = 1500
const BEFORE = 'export const sum = (a, b) => a - b'
const AFTER = 'export const sum = (a, b) => a + b'

const call = (tool: string, args: unknown) => `[[tool:^${tool}$ ${JSON.stringify(args)}]]`

const editing: Readonly<Record<string, Editing>> = {
  claude: {
    look: file => call('Read', { file_path: file }),
    edit: file => call('Edit', { file_path: file, old_string: BEFORE, new_string: AFTER }),
  },
  codex: {
    edit(file) {
      const patch = ['*** Begin Patch', `*** Update File: ${file}`, '@@', `-${BEFORE}`, `+${AFTER}`, '*** End Patch']
      return call('exec_command', { cmd: `apply_patch <<'EOF'\n${patch.join('\n')}\nEOF` })
    },
  },
}

/** Does the job with an agent; returns what was wrong. */
async function work(name: string, sandbox: 'none' | 'default', folder: string): Promise<string[]> {
  const title = `${name}${sandbox === 'none' ? '' : ', in a sandbox'}`
  const startedAt = performance.now()
  const world = await CodingWorld.open(realAgents[name]!, folder)
  try {
    for (const { what, run } of codingJob(world, editing[name]!, sandbox)) {
      const seen = await run().catch(async error => {
        const why = String(error instanceof Error ? error.stack : error).slice(0, MAX_WHY)
        throw new Error(`${what}: ${why}\nlast result of a tool: ${await world.lastResult()}`)
      })
      console.log(`ok    ${title}: ${what}: ${seen}  (${seconds(startedAt)})`)
    }
    return []
  } catch (error) {
    console.log(`FAIL  ${title}: ${error instanceof Error ? error.message : error}`)
    return [title]
  } finally {
    await world.close()
  }
}

const SANDBOXES = ['none', 'default'] as const

const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(1)} s`

async function main(args: readonly string[]): Promise<number> {
  const names = args.length > 0 ? args : Object.keys(editing)
  const unknown = names.find(name => !editing[name])
  if (unknown) throw new NotInstalled(`nothing called ${unknown}; there are ${Object.keys(editing).join(', ')}`)
  for (const name of names) await install(name, realAgents[name]!)
  const startedAt = performance.now()
  // Not with the temporary files: there codex has no helper of its own that edits files.
  const folder = fs.mkdtempSync(path.join(fs.realpathSync(root), 'coding-'))
  try {
    const lane = async (name: string) => {
      const wrong: string[] = []
      for (const sandbox of SANDBOXES)
        wrong.push(...(await work(name, sandbox, path.join(folder, `${name}-${sandbox}`))))
      return wrong
    }
    const wrong = (await Promise.all(names.map(lane))).flat()
    const jobs = names.length * SANDBOXES.length
    console.log(`${jobs - wrong.length} of ${jobs} jobs done  ${seconds(startedAt)}`)
    return wrong.length === 0 ? 0 : 1
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

process.exitCode = await main(process.argv.slice(2)).catch(error => {
  console.error(error instanceof NotInstalled ? error.message : error)
  return 2
})
