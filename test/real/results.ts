import { realAgents } from './agents.js'

/** What a real agent has to do through the daemon, as a column of the table in docs/agents.md. */
export const capabilities = {
  questions: 'asks permission',
  files: 'edits a file with its own tool',
  ownQuestions: 'puts its own questions',
  hook: 'hooks can refuse',
  hookAll: 'hooks under approve-all',
  cancel: 'cancel',
  errors: 'reports a failing model within 30 s',
  dropped: 'survives a dropped stream',
  killed: 'restored after a crash',
  frozen: 'ended when unresponsive',
  restart: 'restored after a restart',
  load: '`session/load`',
  mcp: 'MCP servers',
  mcpHttp: 'MCP servers over HTTP',
  model: 'switches models',
  models: 'lists its models',
  job: 'jobs, in a sandbox',
  sandbox: 'asks and works in a sandbox',
} as const
export type Capability = keyof typeof capabilities
/** It holds, it does not, or what the agent does instead. */
export type Cell = boolean | string

/** What the line of a run begins with that tells its results, for scripts/test-real.ts. */
export const RESULT = 'RESULT '

/** results.json: what the last run of `npm run test:real` saw, by agent. */
export interface Results {
  readonly node: string
  readonly agents: Readonly<
    Record<string, { readonly package: string; readonly version: string } & Readonly<Partial<Record<Capability, Cell>>>>
  >
}

/** The results with those of a run in the place of what they were of the same agents. */
export function withRun(
  before: Results | undefined,
  runs: Readonly<Record<string, Readonly<Partial<Record<Capability, Cell>>>>>,
): Results {
  const agents = { ...before?.agents }
  for (const [name, run] of Object.entries(runs)) {
    const agent = realAgents[name]
    // Checks end in any order, and the committed file must not change with it.
    const cells = Object.keys(capabilities).flatMap(key => (key in run ? [[key, run[key as Capability]] as const] : []))
    if (agent) agents[name] = { package: agent.package, version: agent.version, ...Object.fromEntries(cells) }
  }
  const ordered = Object.keys(realAgents).flatMap(name => (agents[name] ? [[name, agents[name]] as const] : []))
  return { node: process.version.replace(/\..*/, ''), agents: Object.fromEntries(ordered) }
}

/** The columns that README shows. */
export const mainCapabilities: readonly Capability[] = ['questions', 'hook', 'restart', 'job']

/** The table of docs/agents.md, a line each; with other columns that of README. */
export function resultsTable(
  { agents }: Results,
  names: readonly Capability[] = Object.keys(capabilities) as Capability[],
): string[] {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [
    row(['agent', ...names.map(name => capabilities[name])]),
    row(['---', ...names.map(() => ':---:')]),
    ...Object.entries(agents).map(([name, agent]) => {
      const marks = names.map(what => mark(agent[what]))
      return row([`${realAgents[name]?.provider ?? name}: \`${agent.package}\` ${agent.version}`, ...marks])
    }),
  ]
}

function mark(cell: Cell | undefined): string {
  if (typeof cell === 'string') return cell
  return cell === undefined ? 'not watched' : cell ? '✓' : '✗'
}
