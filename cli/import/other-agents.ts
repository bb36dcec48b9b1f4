import { basename, dirname, sep } from 'node:path'
import { clip, shown } from '../../kernel/kit/text.js'
import { scheduleProblem } from '../../plugins/work/automation/schedule.js'
import type { Schedule } from '../../schemas/automation.js'
import { wantSkill } from './claude.js'
import { exprOf } from './crontab.js'
import {
  type Document,
  ForeignFileError,
  objectOf,
  parseJsonFile,
  parseTomlFile,
  type SourceFile,
  typeOf,
} from './foreign-file.js'
import { readServers, SERVER_MEMBERS } from './mcp-servers.js'
import { type Around, Findings, type Found, NotCarried } from './plan.js'

/** `config.toml` of Codex: its servers; the agent codex reads the rest itself. */
export function importCodex(files: readonly SourceFile[], around: Around): Found {
  return eachFile(files, (file, found) => readOwn(parseTomlFile(file), file.path, 'codex', around, found))
}

/** `settings.json` of Gemini: its servers, in which `url` means SSE. */
export function importGemini(files: readonly SourceFile[], around: Around): Found {
  return eachFile(files, (file, found) => {
    const document = parseJsonFile(file)
    const top = objectOf(document.value)
    const servers = Object.entries(objectOf(top?.mcpServers) ?? {}).map(([name, value]) => {
      const { url, httpUrl, type } = objectOf(value) ?? {}
      const isSse = url !== undefined && httpUrl === undefined && type === undefined
      return [name, isSse ? { ...(value as object), type: 'sse' } : value]
    })
    const value = top?.mcpServers === undefined ? document.value : { ...top, mcpServers: Object.fromEntries(servers) }
    readOwn({ ...document, value }, file.path, 'gemini', around, found)
  })
}

/** Runs a reader over files; an unreadable file does not affect the others. */
export function eachFile(files: readonly SourceFile[], read: (file: SourceFile, found: Findings) => void): Found {
  const found = new Findings()
  for (const file of files) {
    try {
      read(file, found)
    } catch (error) {
      if (!(error instanceof ForeignFileError)) throw error
      found.leave({ file: file.path, line: error.line }, basename(file.path), error.message)
    }
  }
  return found
}

/** Imports the servers, so that every agent has them; other settings stay with their agent. */
function readOwn(document: Document, path: string, agent: string, around: Around, found: Findings): void {
  const top = objectOf(document.value)
  if (!top) throw new ForeignFileError(`an object is expected, not ${typeOf(document.value)}`, 1)
  for (const member of Object.keys(top))
    if (!(SERVER_MEMBERS as readonly string[]).includes(member) && member !== '$schema')
      found.stays(
        { file: path, line: document.lineOf([member]) },
        shown(member, 40).slice(1, -1),
        `the agent ${agent} reads it itself, also when svc runs it`,
      )
  if (SERVER_MEMBERS.some(member => member in top)) readServers(document, path, around, found)
}

/** Jobs and skills of OpenClaw. */
export function importOpenClaw(files: readonly SourceFile[], around: Around): Found {
  return eachFile(files, (file, found) => {
    const { path } = file
    if (basename(path) === 'SKILL.md') return wantSkill(dirname(path), found)
    if (path.includes(`${sep}skills${sep}`)) return
    const document = parseJsonFile(file)
    if (basename(path) === 'jobs.json') readJobs(document, path, around, found)
    else if (objectOf(objectOf(document.value)?.mcp)?.servers !== undefined) readServers(document, path, around, found)
  })
}

function readJobs(document: Document, path: string, around: Around, found: Findings): void {
  const jobs = Array.isArray(document.value) ? document.value : objectOf(document.value)?.jobs
  if (!Array.isArray(jobs)) throw new ForeignFileError('a list jobs is expected in it', 1)
  const at = Array.isArray(document.value) ? [] : ['jobs']
  for (const [index, value] of jobs.slice(0, 5000).entries()) {
    const location = { file: path, line: document.lineOf([...at, index]) }
    const job = objectOf(value) ?? {}
    const named = [job.name, job.id].find(text => typeof text === 'string' && text.trim() !== '')
    const name = typeof named === 'string' ? clip(named.trim(), 200) : `job ${index + 1}`
    found.entry(location, shown(name, 60).slice(1, -1), () => {
      const { prompt, left } = promptOf(job)
      const schedule = scheduleOf(job.schedule, around)
      for (const [member, why] of left) found.leave(location, `${shown(name, 40).slice(1, -1)}.${member}`, why)
      const notes = job.enabled === false ? ['it is disabled in the file'] : []
      const isOff = job.enabled === false && { enabled: false as const }
      found.want({ kind: 'job', ...location, name, agent: around.agent ?? '', prompt, schedule, notes, ...isOff })
    })
  }
}

type Members = Readonly<Record<string, unknown>>

/** The prompt of a run, and the members of the job without a counterpart. @throws NotCarried */
function promptOf(job: Members): { readonly prompt: string; readonly left: readonly (readonly [string, string])[] } {
  const payload = objectOf(job.payload) ?? {}
  if (payload.kind === 'systemEvent')
    throw new NotCarried('it wakes the main session of OpenClaw; svc has heartbeats: svc agent heartbeat --help')
  if (payload.kind !== 'agentTurn') throw new NotCarried(`its payload is ${typeOf(payload.kind)}; agentTurn is known`)
  if (typeof payload.message !== 'string' || payload.message.trim() === '') throw new NotCarried('it has no message')
  const left: [string, string][] = []
  if (payload.model !== undefined) left.push(['payload.model', 'a job runs the model of its agent: --agent names one'])
  if (payload.thinking !== undefined) left.push(['payload.thinking', 'it is reasoning_effort of the agent'])
  if (objectOf(job.delivery) || payload.deliver === true)
    left.push(['delivery', 'svc notifies by presets: svc notifications preset --help'])
  if (typeof job.sessionTarget === 'string' && job.sessionTarget !== 'isolated')
    left.push(['sessionTarget', 'each run of a job of svc has a session of its own'])
  return { prompt: payload.message, left }
}

/** @throws NotCarried */
function scheduleOf(value: unknown, { timezone, now }: Around): Schedule {
  const members = objectOf(value) ?? {}
  const schedule = scheduleBy(members, timezone, now)
  const problem = scheduleProblem(schedule)
  if (problem !== undefined) throw new NotCarried(problem)
  return schedule
}

function scheduleBy({ kind, expr, tz, everyMs, at, atMs }: Members, timezone: string, now: number): Schedule {
  if (kind === 'cron' && typeof expr === 'string') {
    const fields = expr.trim().split(/\s+/)
    if (fields.length !== 5 && !expr.trim().startsWith('@'))
      throw new NotCarried('its cron expression does not have five fields')
    const zone = typeof tz === 'string' && tz !== '' ? tz : timezone
    return { mode: 'cron', expr: exprOf(fields.length === 5 ? { fields } : { nickname: expr.trim() }), timezone: zone }
  }
  if (kind === 'every' && typeof everyMs === 'number') {
    if (everyMs % 1000 !== 0 || everyMs <= 0)
      throw new NotCarried(`every ${everyMs} ms: the interval must be whole seconds`)
    return { mode: 'every', interval: `${everyMs / 1000}s` }
  }
  const time = typeof at === 'string' ? Date.parse(at) : typeof atMs === 'number' ? atMs : Number.NaN
  if (kind !== 'at' || Number.isNaN(time))
    throw new NotCarried(`its schedule is ${typeOf(kind)}; cron, every and at are known`)
  if (time <= now) throw new NotCarried('its time has passed')
  return { mode: 'at', time: new Date(time).toISOString() }
}
