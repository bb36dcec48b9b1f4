import { createHash } from 'node:crypto'
import { basename, dirname, join, sep } from 'node:path'
import { FrontmatterError, headValues, parseHead, splitFrontmatter } from '../../kernel/kit/frontmatter.js'
import { cut, shown } from '../../kernel/kit/text.js'
import { CLAUDE_MATCHER, CLAUDE_PROJECT, claudeGlobs } from '../../plugins/work/hooks/claude-format.js'
import type { HookEvent } from '../../schemas/hooks.js'
import { type Document, ForeignFileError, objectOf, parseJsonFile, type SourceFile, typeOf } from './foreign-file.js'
import { readServers } from './mcp-servers.js'
import { type Around, Findings, type Found, NotCarried, type SourceLocation, slug } from './plan.js'

/** Default timeout of a Claude Code hook in seconds, and the maximum in svc. */
const HOOK_SECONDS = 60
const MOST_SECONDS = 300

interface EventOf {
  readonly events: readonly HookEvent[]
  readonly mode: 'sync' | 'async'
  /** Functions of the hook that are not available in svc. */
  readonly note?: string
}

/** Claude Code events with the svc events that run their hooks. */
const EVENTS: Readonly<Record<string, EventOf>> = {
  PreToolUse: { events: ['permission.request', 'tool.pre_call'], mode: 'sync' },
  PermissionRequest: { events: ['permission.request'], mode: 'sync' },
  PostToolUse: { events: ['tool.post_call'], mode: 'async', note: 'its output does not reach the agent' },
  PostToolUseFailure: { events: ['tool.post_error'], mode: 'async', note: 'its output does not reach the agent' },
  UserPromptSubmit: { events: ['input.pre_submit'], mode: 'sync' },
  SessionStart: { events: ['session.post_create'], mode: 'async', note: 'its output does not reach the agent' },
  SessionEnd: { events: ['session.post_stop'], mode: 'async' },
  Stop: { events: ['turn.end'], mode: 'async', note: 'it cannot make the agent go on' },
}

/** Reasons for which hooks of other events are not imported. */
const NO_EVENT: Readonly<Record<string, string>> = {
  Notification: 'svc has notifications of its own: svc notifications',
  SubagentStop: 'svc has no events for the subagents of an agent',
  SubagentStart: 'svc has no events for the subagents of an agent',
  PreCompact: 'svc has no event before a compaction, only one after it',
}

/** Members of settings.json that only Claude Code uses. */
const OWN: ReadonlySet<string> = new Set(['hooks', '$schema', 'mcpServers'])

/** Imports settings, agents and commands of Claude Code. */
export function importClaude(files: readonly SourceFile[], around: Around): Found {
  const found = new Findings()
  for (const file of files) {
    const { path } = file
    try {
      if (/(?:^|\/)settings(?:\.local)?\.json$/.test(path)) readSettings(file, around, found)
      else if (path.endsWith('.claude.json')) readState(parseJsonFile(file), path, around, found)
      else if (path.includes(`${sep}skills${sep}`)) {
        if (basename(path) === 'SKILL.md') readSkill(path, around, found)
      } else if (path.includes(`${sep}agents${sep}`)) readAgent(file, found)
      else if (path.includes(`${sep}commands${sep}`)) readCommand(file, found)
    } catch (error) {
      if (!(error instanceof ForeignFileError)) throw error
      found.leave({ file: path, line: error.line }, basename(path), error.message)
    }
  }
  return found
}

/** The project of a settings file; undefined for the person's own file, which applies everywhere. */
function projectOf(path: string, { userHome }: Around): string | undefined {
  const folder = dirname(dirname(path))
  return folder === userHome ? undefined : folder
}

function readSettings(file: SourceFile, around: Around, found: Findings): void {
  const document = parseJsonFile(file)
  const locate = (path: readonly (string | number)[]) => ({ file: file.path, line: document.lineOf(path) })
  const top = objectOf(document.value)
  if (!top) throw new ForeignFileError(`an object is expected, not ${typeOf(document.value)}`, 1)
  for (const { name, line } of document.twice)
    found.leave(
      { file: file.path, line },
      shown(name, 60).slice(1, -1),
      'the member occurs twice; the last one is used',
    )
  for (const member of Object.keys(top))
    if (!OWN.has(member))
      found.stays(
        locate([member]),
        shown(member, 40).slice(1, -1),
        'the agent claude reads it itself, also when svc runs it',
      )
  if (top.mcpServers !== undefined) readServers(document, file.path, around, found)
  const hooks = objectOf(top.hooks)
  if (top.hooks !== undefined && !hooks)
    found.leave(locate(['hooks']), 'hooks', `an object is expected, not ${typeOf(top.hooks)}`)
  if (hooks && top.disableAllHooks === true)
    found.leave(locate(['hooks']), 'hooks', 'disableAllHooks is set in the file')
  else
    for (const [event, groups] of Object.entries(hooks ?? {}))
      readEvent(event, groups, { locate, around, found, project: projectOf(file.path, around) })
}

interface Reading {
  readonly locate: (path: readonly (string | number)[]) => SourceLocation
  readonly around: Around
  readonly found: Findings
  readonly project: string | undefined
}

function readEvent(event: string, groups: unknown, reading: Reading): void {
  const { locate, found } = reading
  const at = ['hooks', event]
  if (!Array.isArray(groups)) {
    found.leave(locate(at), shown(event, 40).slice(1, -1), `a list is expected, not ${typeOf(groups)}`)
    return
  }
  for (const [index, group] of groups.entries()) {
    const { matcher = '', hooks } = objectOf(group) ?? {}
    if (!Array.isArray(hooks)) {
      found.leave(locate([...at, index]), shown(event, 40).slice(1, -1), 'a list hooks is expected in it')
      continue
    }
    for (const [nth, hook] of hooks.entries()) {
      const where = locate([...at, index, 'hooks', nth])
      found.entry(where, shown(event, 40).slice(1, -1), () => wantHook(event, matcher, hook, where, reading))
    }
  }
}

/** Imports one hook, for each svc event of its Claude Code event. @throws NotCarried */
function wantHook(
  event: string,
  matcher: unknown,
  value: unknown,
  where: SourceLocation,
  { found, project }: Reading,
): void {
  const known = Object.hasOwn(EVENTS, event) ? EVENTS[event] : undefined
  if (!known) throw new NotCarried(NO_EVENT[event] ?? 'svc has no such event')
  const hook = objectOf(value)
  if (!hook) throw new NotCarried(`an object is expected, not ${typeOf(value)}`)
  const { type = 'command', command, timeout = HOOK_SECONDS } = hook
  if (type !== 'command') throw new NotCarried(`its type is ${typeOf(type)}; svc runs programs`)
  if (typeof command !== 'string' || command.trim() === '') throw new NotCarried('it has no command')
  if (typeof matcher !== 'string' || claudeGlobs(matcher) === undefined)
    throw new NotCarried(`matcher ${typeOf(matcher)}: names joined by | are possible, with .* for anything`)
  for (const member of ['if', 'once', 'shell'])
    if (hook[member] !== undefined) throw new NotCarried(`svc has no equivalent of its member ${member}`)
  if (typeof timeout !== 'number' || !(timeout > 0)) throw new NotCarried('its timeout is not a number of seconds')
  const seconds = Math.min(timeout, MOST_SECONDS)
  const mode = hook.async === true ? 'async' : known.mode
  const metadata = {
    ...(matcher !== '' && { [CLAUDE_MATCHER]: matcher }),
    ...(project !== undefined && { [CLAUDE_PROJECT]: project }),
  }
  const notes = [
    ...(known.note === undefined ? [] : [known.note]),
    ...(timeout > MOST_SECONDS ? [`the timeout is limited to ${MOST_SECONDS} s instead of ${timeout}`] : []),
  ]
  const hash = createHash('sha256')
    .update(JSON.stringify([event, matcher, command, project ?? '', hook.args ?? null]))
    .digest('hex')
  const name = `claude-${slug(event.replace(/([a-z])([A-Z])/g, '$1-$2'), 'hook')}-${hash.slice(0, 6)}`
  for (const [nth, own] of known.events.entries())
    found.want({
      ...{ kind: 'hook', ...where, notes },
      name: nth === 0 ? name : `${name}-call`,
      declaration: {
        event: own,
        mode,
        format: 'claude',
        ...programOf(command, hook.args, project),
        timeout: `${seconds}s`,
        ...(Object.keys(metadata).length > 0 && { metadata }),
      },
    })
}

/** A shell command, or with a list of arguments a program. */
function programOf(command: string, args: unknown, project: string | undefined) {
  if (!Array.isArray(args)) return { command: 'sh', args: ['-c', command] }
  // A program without a shell gets the expanded folder; hooks of the person have no project.
  const full = (text: unknown) => String(text).replace(/\$\{CLAUDE_PROJECT_DIR\}/g, whole => project ?? whole)
  return { command: full(command), args: args.map(full) }
}

/** Servers of `~/.claude.json`: those of the person, and those of the imported project. */
function readState(document: Document, path: string, around: Around, found: Findings): void {
  const top = objectOf(document.value) ?? {}
  if (objectOf(top.mcpServers)) readServers(document, path, around, found)
  for (const [project, value] of Object.entries(objectOf(top.projects) ?? {})) {
    const servers = objectOf(objectOf(value)?.mcpServers)
    if (!servers || Object.keys(servers).length === 0) continue
    const at = ['projects', project]
    if (project !== around.rootDir) {
      const location = { file: path, line: document.lineOf([...at, 'mcpServers']) }
      found.leave(location, 'mcpServers', `of the project ${shown(project, 80)}: import it with --workspace ${project}`)
      continue
    }
    const part = {
      ...document,
      value,
      twice: [],
      lineOf: (below: readonly (string | number)[]) => document.lineOf([...at, ...below]),
    }
    readServers(part, path, around, found)
  }
}

/** Fields and text of a file with frontmatter. @throws ForeignFileError with the line */
export function readHead({ text }: SourceFile): {
  readonly head: Readonly<Record<string, unknown>>
  readonly body: string
} {
  const split = splitFrontmatter(text)
  if (split === 'open') throw new ForeignFileError('its frontmatter is not closed by a line ---', 1)
  if (split === 'none') return { head: {}, body: text.trim() }
  try {
    return { head: objectOf(headValues(parseHead(split.head))) ?? {}, body: split.body.trim() }
  } catch (error) {
    if (!(error instanceof FrontmatterError)) throw error
    throw new ForeignFileError(`its frontmatter cannot be read: ${error.message}`, error.position.line)
  }
}

/** `agents/reviewer.md`: the text becomes the prompt; tools and models of Claude are listed as not imported. */
function readAgent(file: SourceFile, found: Findings): void {
  const location = { file: file.path, line: 1 }
  const { head, body } = readHead(file)
  const written = typeof head.name === 'string' ? head.name : basename(file.path, '.md')
  const name = slug(written, 'agent', 64)
  if (body === '') throw new ForeignFileError('it has no text, which is the prompt of an agent', 1)
  for (const member of Object.keys(head)) {
    if (['name', 'description', 'color'].includes(member) || (member === 'model' && head.model === 'inherit')) continue
    const why = LEFT_OF_AGENTS[member] ?? 'svc has no equivalent of this member'
    found.leave({ file: file.path, line: lineOf(file, member) }, `${written}.${member}`, why)
  }
  const notes = name === written ? [] : [`named ${name}`]
  if (typeof head.description === 'string')
    notes.push('without its description, which an AGENT.md of svc does not have')
  found.want({ kind: 'agent', ...location, name, agent: { prompt: body }, notes })
}

const LEFT_OF_AGENTS: Readonly<Record<string, string>> = {
  tools: 'these are tools of Claude; in svc, tools of an agent lists tools of the daemon (svc tool list)',
  disallowedTools:
    'these are tools of Claude; in svc, deny_tools of an agent lists tools of the daemon (svc tool list)',
  model: 'it is a name of Claude; choose one: svc agent update <name> --provider claude --model <model>',
  permissionMode: 'choose one: svc agent update <name> --permissions approve-reads',
  mcpServers: 'give them to the agent in AGENT.md, as mcp_servers',
  hooks: 'give them to the agent in AGENT.md, as hooks with format claude',
}

/** The line of a frontmatter member; 1 when it has another syntax. */
function lineOf({ text }: SourceFile, member: string): number {
  return text.split('\n').findIndex(line => line.startsWith(`${member}:`)) + 1 || 1
}

/** `commands/fix-issue.md`: a named prompt becomes a skill that is used only when a prompt names it. */
function readCommand(file: SourceFile, found: Findings): void {
  const location = { file: file.path, line: 1 }
  const { head, body } = readHead(file)
  const below = file.path.split(`${sep}commands${sep}`).at(-1) ?? ''
  const name = slug(below.replace(/\.md$/, ''), 'command', 64)
  if (body === '') throw new ForeignFileError('it has no text', 1)
  const at = (pattern: RegExp) => file.text.split('\n').findIndex(line => pattern.test(line)) + 1
  for (const [pattern, what, why] of POWERS) {
    const line = at(pattern)
    if (line > 0) found.leave({ file: file.path, line }, `${name} ${what}`, why)
  }
  for (const member of Object.keys(head))
    if (!['description', 'argument-hint'].includes(member))
      found.leave(
        { file: file.path, line: lineOf(file, member) },
        `${name}.${member}`,
        'svc has no equivalent of this member',
      )
  const description = typeof head.description === 'string' ? head.description : (body.split('\n')[0] ?? '')
  const text = [
    '---',
    `name: ${name}`,
    `description: ${JSON.stringify(cut(description.replace(/^#+\s*/, ''), 500))}`,
    '---',
    body,
    '',
  ].join('\n')
  found.want({ kind: 'skill', ...location, name, from: { text }, notes: [] })
}

/** Placeholders that Claude Code expands in a command before the model reads it. */
const POWERS = [
  [
    /\$ARGUMENTS|\$[1-9]\b/,
    '$ARGUMENTS',
    'svc does not insert arguments into a skill; the agent reads them from the prompt',
  ],
  [/!`[^`]+`/, '!`command`', 'svc runs no commands for a skill; the text tells the agent to run them'],
] as const

/** A skill of a project is used in place; one of the person is copied. */
function readSkill(path: string, around: Around, found: Findings): void {
  const folder = dirname(path)
  const owner = path.slice(0, path.lastIndexOf(`${sep}skills${sep}`))
  const why = 'svc reads the skills of a trusted workspace in place'
  if (dirname(owner) === around.userHome) wantSkill(folder, found)
  else found.stays({ file: path, line: 1 }, basename(folder), why)
}

/** A folder with a SKILL.md, named after the folder. */
export function wantSkill(folder: string, found: Findings): void {
  const written = basename(folder)
  const name = slug(written, 'skill', 64)
  const notes = name === written ? [] : [`in the folder ${name}`]
  found.want({ kind: 'skill', file: join(folder, 'SKILL.md'), line: 1, name, from: { folder }, notes })
}
