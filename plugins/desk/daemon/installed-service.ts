import { createHash } from 'node:crypto'
import { accessSync, constants } from 'node:fs'
import { basename, isAbsolute, join } from 'node:path'
import { readRegularFileSync } from '../../../kernel/kit/read-file.js'
import { clip } from '../../../kernel/kit/text.js'

/** The service manager: systemd of the user or the system, or launchd. */
export type Supervisor = 'systemd-user' | 'systemd-system' | 'launchd'

/** The location of a service file. It follows from the home alone, so it is found again without being stored. */
export interface ServiceDefinition {
  readonly supervisor: Supervisor
  /** `svc.service`, or the label for launchd. */
  readonly name: string
  readonly file: string
  /** The socket unit; systemd only. */
  readonly socket?: { readonly name: string; readonly file: string }
}

/** The home and the user that a service belongs to. */
export interface ServiceOwner {
  /** Home of the daemon, absolute. */
  readonly home: string
  /** Home of the user. */
  readonly userHome: string
  readonly user: string
  readonly platform: NodeJS.Platform
  readonly configHome?: string | undefined
}

/** The content of a service file. */
export interface WrittenService {
  /**
   * `ours`: unchanged since this program wrote it; `edited`: changed since then; `foreign`: written by another program or a
   * person.
   */
  readonly mark: 'ours' | 'edited' | 'foreign'
  /** The program and its arguments. */
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

const MAX_BYTES = 256 * 1024
const MARK = 'svc service install'
/** The line with the mark. It ends with a digest of the file without this line. */
const MARK_LINE = /^.*written by svc service install, sha256:([0-9a-f]{64}).*\n/m

/** Possible locations of a service for this home; the user's location comes first. */
export function servicePlaces(owner: ServiceOwner): ServiceDefinition[] {
  const { home, userHome, user, platform } = owner
  const isUsual = home === join(userHome, '.svc')
  const hash = createHash('sha256').update(home).digest('hex').slice(0, 8)
  const slug = clip(
    basename(home)
      .replace(/[^A-Za-z0-9]+/g, '-')
      .replace(/^-|-$/g, ''),
    30,
  )
  const own = isUsual ? 'svc' : `svc-${slug === '' ? '' : `${slug}-`}${hash}`
  if (platform === 'darwin') {
    const label = isUsual ? 'dev.svc.daemon' : `dev.svc.daemon.${hash}`
    return [{ supervisor: 'launchd', name: label, file: join(userHome, 'Library/LaunchAgents', `${label}.plist`) }]
  }
  const unit = (supervisor: Supervisor, folder: string, name: string): ServiceDefinition => ({
    supervisor,
    name: `${name}.service`,
    file: join(folder, `${name}.service`),
    socket: { name: `${name}.socket`, file: join(folder, `${name}.socket`) },
  })
  const config = owner.configHome && isAbsolute(owner.configHome) ? owner.configHome : join(userHome, '.config')
  const system = `svc-${user.replace(/[^A-Za-z0-9_-]+/g, '-')}${isUsual ? '' : `-${hash}`}`
  return [
    unit('systemd-user', join(config, 'systemd/user'), own),
    unit('systemd-system', '/etc/systemd/system', system),
  ]
}

/** A text whose `@mark` is replaced by the author and digest, in a comment line. */
export function marked(text: string): string {
  const digest = digestOf(text.replace(/^.*@mark.*\n/m, ''))
  return text.replace('@mark', `written by ${MARK}, sha256:${digest}`)
}

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex')

export function markOf(text: string): WrittenService['mark'] {
  const found = MARK_LINE.exec(text)
  if (!found) return 'foreign'
  return digestOf(text.replace(MARK_LINE, '')) === found[1] ? 'ours' : 'edited'
}

/** The content of a service file; undefined if it does not exist. @throws Fault `file_not_regular`, `file_unreadable` */
export function serviceText(file: string): string | undefined {
  return readRegularFileSync(file, { maxBytes: MAX_BYTES })?.toString()
}

/** Parses the command, environment and author of a service file. */
export function readService(text: string, supervisor: Supervisor): WrittenService {
  return { mark: markOf(text), ...(supervisor === 'launchd' ? fromPlist(text) : fromUnit(text)) }
}

function fromUnit(text: string): Pick<WrittenService, 'argv' | 'env'> {
  const argv = /^ExecStart=[@:+!-]*(.*)$/m.exec(text)?.[1] ?? ''
  const env = [...text.matchAll(/^Environment=(.*)$/gm)].flatMap(([, words = '']) => wordsOf(words))
  return { argv: wordsOf(argv), env: Object.fromEntries(env.map(pairOf)) }
}

const pairOf = (word: string): [string, string] => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]

/** Words of a unit line: quoted with backslash escapes, or bare. */
const wordsOf = (line: string): string[] =>
  [...line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, quoted, bare = '']) =>
    (quoted?.replace(/\\(.)/g, '$1') ?? bare).replaceAll('%%', '%'),
  )

function fromPlist(text: string): Pick<WrittenService, 'argv' | 'env'> {
  const plain = (word: string) =>
    word.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&')
  const list = /<key>ProgramArguments<\/key>\s*<array>([\s\S]*?)<\/array>/.exec(text)?.[1] ?? ''
  const dict = /<key>EnvironmentVariables<\/key>\s*<dict>([\s\S]*?)<\/dict>/.exec(text)?.[1] ?? ''
  const pairs = [...dict.matchAll(/<key>(.*?)<\/key>\s*<string>(.*?)<\/string>/g)]
  return {
    argv: [...list.matchAll(/<string>(.*?)<\/string>/g)].map(([, word = '']) => plain(word)),
    env: Object.fromEntries(pairs.map(([, name = '', value = '']) => [plain(name), plain(value)])),
  }
}

/** A problem that prevents a service from working. */
export interface ServiceProblem {
  readonly code: 'service_node_missing' | 'service_program_missing' | 'service_path_gone' | 'service_other_home'
  readonly message: string
}

/** Missing files of a service, and a wrong home. */
export function serviceProblems({ argv, env }: WrittenService, home: string): ServiceProblem[] {
  const found: ServiceProblem[] = []
  const [node = ''] = argv
  const program = argv.find(word => /\/daemon\.c?js$/.test(word))
  if (!isThere(node, constants.X_OK)) {
    found.push({ code: 'service_node_missing', message: `ExecStart points to a missing node: ${node}` })
  }
  if (program === undefined || !isThere(program, constants.R_OK)) {
    const what = `ExecStart points to a missing daemon: ${program ?? 'none'}`
    found.push({ code: 'service_program_missing', message: what })
  }
  const gone = (env.PATH ?? '').split(':').filter(folder => folder !== '' && !isThere(folder, constants.X_OK))
  if (gone.length > 0) {
    found.push({ code: 'service_path_gone', message: `folders of its PATH no longer exist: ${gone.join(', ')}` })
  }
  if (env.SVC_HOME !== undefined && env.SVC_HOME !== home) {
    found.push({ code: 'service_other_home', message: `it starts the daemon of ${env.SVC_HOME}, not of ${home}` })
  }
  return found
}

function isThere(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    return isAbsolute(path)
  } catch {
    return false
  }
}
