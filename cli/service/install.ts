import { mkdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { replaceDurably } from '../../kernel/kit/durable-file.js'
import { markOf, type ServiceDefinition, serviceText } from '../../plugins/desk/daemon/installed-service.js'
import { runningDaemon } from '../address.js'
import { lastReason, logPath } from '../daemon/log-file.js'
import { CliFault, exitCodes } from '../fault.js'
import type { LocalContext } from '../local.js'
import { type ServiceFacts, secretNames } from './facts.js'
import { launchdPlist } from './launchd-plist.js'
import { isLingering, lingerCommand } from './linger.js'
import { call, systemctl } from './manager-call.js'
import { serviceFacts, serviceOf, serviceOwner } from './service-of.js'
import { socketUnit, systemdUnit } from './systemd-unit.js'

interface ServiceFile {
  readonly file: string
  readonly text: string
}

/** The result of an installation. */
interface Outcome {
  /**
   * `started`; `restart_needed`: the service still runs with the old unit; `enabled`: another daemon holds the home now; `written`:
   * the manager was unreachable, or `--no-start` was given.
   */
  readonly status: 'started' | 'restart_needed' | 'enabled' | 'written'
  /** Remaining commands for the person, in this order. */
  readonly commands: readonly string[]
}

/** `service install`: writes the unit of this home and lets the manager start it, now and at each boot. */
export async function installService(context: LocalContext): Promise<undefined> {
  const { out, options } = context
  const owner = serviceOwner(context)
  const service = serviceOf(owner, context)
  const facts = await serviceFacts(owner, context)
  const files = filesOf(service, facts, context)
  if (options.print === true) {
    if (out.json) out.value({ files: files.map(({ file, text }) => ({ path: file, text })) })
    else for (const { file, text } of files) context.io.stdout.write(files.length > 1 ? `# ${file}\n${text}\n` : text)
    return undefined
  }
  if (owner.platform !== process.platform) {
    throw new CliFault('usage', `--manager ${String(options.manager)} is for another system; add --print`, {
      exit: exitCodes.usage,
    })
  }
  const written = await write(files, service, context)
  const { status, commands } = await enable(service, facts, written, context)
  const notes = notesOf(service, facts, context)
  if (out.json) {
    const linger = service.supervisor === 'systemd-user' ? { linger: isLingering(facts.user) } : {}
    const names = files.map(({ file }) => file)
    out.value({
      status,
      service: service.name,
      files: names,
      changed: written,
      home: facts.home,
      ...linger,
      commands,
      notes,
    })
    return undefined
  }
  for (const { file } of files) out.line(`${written ? 'wrote' : 'unchanged'} ${file}`)
  if (status === 'started') out.line(`${service.name} runs and starts with the ${machineOr(service)}`)
  if (status === 'enabled')
    out.line(`${service.name} starts with the ${machineOr(service)}; a daemon that the service did not start runs now`)
  if (status === 'restart_needed')
    out.line(`${service.name} still runs with the old unit; the change takes effect when it starts again`)
  if (status === 'written') out.line('The service manager was not asked to start it.')
  if (commands.length > 0) out.line('Run:')
  for (const command of commands) out.line(`  ${command}`)
  for (const note of notes) out.line(note)
  return undefined
}

const machineOr = ({ supervisor }: ServiceDefinition) =>
  supervisor === 'systemd-system' ? 'machine' : 'session of its user'

function filesOf(unit: ServiceDefinition, facts: ServiceFacts, { options }: LocalContext): ServiceFile[] {
  if (unit.supervisor === 'launchd') {
    if (options.socket === true || options.tcp === true)
      throw new CliFault('usage', '--socket and --tcp are for systemd', { exit: exitCodes.usage })
    return [{ file: unit.file, text: launchdPlist(unit.name, facts) }]
  }
  const system = unit.supervisor === 'systemd-system'
  const isActivated = options.socket === true || options.tcp === true
  const socket = isActivated ? unit.socket : undefined
  const service = { file: unit.file, text: systemdUnit(facts, { system, socket: socket?.name }) }
  if (!socket) return [service]
  const { tcp } = facts.listen
  if (options.tcp === true && (tcp === undefined || tcp.endsWith(':0'))) {
    throw new CliFault('service_no_port', 'the configuration has no TCP port that a unit could listen on', {
      exit: exitCodes.invalid,
      next: 'svc config set http.port 2123',
    })
  }
  const listen = { socket: facts.listen.socket, ...(options.tcp === true && tcp !== undefined && { tcp }) }
  return [service, { file: socket.file, text: socketUnit({ ...facts, listen }, system) }]
}

/** Whether any file changed. @throws CliFault `service_edited`, `service_foreign`, `service_unwritable` */
async function write(
  files: readonly ServiceFile[],
  service: ServiceDefinition,
  { options }: LocalContext,
): Promise<boolean> {
  const changed = files.filter(({ file, text }) => {
    const before = serviceText(file)
    if (before === text) return false
    const mark = before === undefined ? 'ours' : markOf(before)
    if (mark !== 'ours' && options.force !== true) throw refusal(file, mark)
    return true
  })
  try {
    for (const { file, text } of changed) {
      mkdirSync(dirname(file), { recursive: true })
      const before = serviceText(file)
      if (before !== undefined && markOf(before) !== 'ours')
        await replaceDurably(`${file}.before`, Buffer.from(before), { mode: 0o644 })
      await replaceDurably(file, Buffer.from(text), { mode: 0o644 })
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const sudo = service.supervisor === 'systemd-system' && (code === 'EACCES' || code === 'EPERM')
    throw new CliFault('service_unwritable', `the unit cannot be written: ${message}`, {
      exit: exitCodes.refused,
      next: sudo ? 'sudo svc service install --system' : 'svc service install --print',
      cause: error,
    })
  }
  return changed.length > 0
}

/** The error for a file that this program did not write, or that was edited. */
export function refusal(file: string, mark: 'edited' | 'foreign', command = 'install'): CliFault {
  const what =
    mark === 'edited' ? `${file} was changed after svc wrote it` : `${file} was not written by svc service install`
  const kept = command === 'install' ? 'the old file is kept as .before' : 'it is removed in spite of the change'
  return new CliFault(`service_${mark}`, `${what}; nothing was changed. With --force ${kept}`, {
    exit: exitCodes.conflict,
    next: command === 'install' ? 'svc service install --force' : 'svc service uninstall --force',
  })
}

/** The current daemon of the home: `none`, the `service` itself, or one that was started outside of it. */
type Holder = 'none' | 'service' | 'other'

async function holderOf(service: ServiceDefinition, home: string, { io }: LocalContext): Promise<Holder> {
  const pid = await runningDaemon(home)
  if (pid === undefined) return 'none'
  const words =
    service.supervisor === 'launchd'
      ? ['launchctl', 'print', target(service)]
      : systemctl(service, 'show', '--property=MainPID', service.name)
  const { stdout } = await call(io, words)
  return new RegExp(`(?:MainPID=|pid = )${pid}$`, 'm').test(stdout) ? 'service' : 'other'
}

/** Lets the manager read the files and start the service, now and at each boot. A running daemon is never ended. */
async function enable(
  service: ServiceDefinition,
  facts: ServiceFacts,
  changed: boolean,
  context: LocalContext,
): Promise<Outcome> {
  const { io, options, progress } = context
  const { home } = facts
  const holder = await holderOf(service, home, context)
  const steps = stepsFor(service, context)
  const byHand = [...(holder === 'other' ? [['svc', 'daemon', 'stop']] : []), ...steps.read, steps.start]
  const written: Outcome = { status: 'written', commands: byHand.map(words => words.join(' ')) }
  if (options['no-start'] === true) return written
  const log = logPath(home)
  const begin = statSync(log, { throwIfNoEntry: false })?.size ?? 0
  for (const words of [...steps.read, holder === 'none' ? steps.start : steps.enable]) {
    if (words.length === 0) continue
    const { ok, problem, unreached } = await progress.during(`running ${words.join(' ')}`, () => call(io, words))
    if (unreached) return written
    if (!ok) throw startFailed(service, words, problem, log, begin)
  }
  if (holder === 'none') return { status: 'started', commands: [] }
  if (holder === 'service') {
    const commands = changed ? steps.restart.map(words => words.join(' ')) : []
    return { status: changed ? 'restart_needed' : 'started', commands }
  }
  return { status: 'enabled', commands: ['svc daemon stop', 'svc daemon start'] }
}

/** Calls of the manager. */
interface Steps {
  /** Reloads the files. */
  readonly read: readonly string[][]
  /** Enables and starts the service; or only enables it. */
  readonly start: string[]
  readonly enable: string[]
  /** Applies the change to a running service. */
  readonly restart: readonly string[][]
}

function stepsFor(service: ServiceDefinition, { options }: LocalContext): Steps {
  if (service.supervisor === 'launchd') {
    const start = ['launchctl', 'bootstrap', `gui/${userId()}`, service.file]
    return { read: [], start, enable: [], restart: [['launchctl', 'bootout', target(service)], start] }
  }
  const isActivated = options.socket === true || options.tcp === true
  const names = [service.name, ...(isActivated && service.socket ? [service.socket.name] : [])]
  return {
    read: [systemctl(service, 'daemon-reload')],
    start: systemctl(service, 'enable', '--now', ...names),
    enable: systemctl(service, 'enable', ...names),
    // A socket is not opened for a service that already runs.
    restart: isActivated
      ? [systemctl(service, 'stop', service.name), systemctl(service, 'start', ...names)]
      : [systemctl(service, 'restart', service.name)],
  }
}

const userId = () => process.getuid?.() ?? 0
const target = ({ name }: ServiceDefinition) => `gui/${userId()}/${name}`

function startFailed(
  service: ServiceDefinition,
  words: readonly string[],
  problem: string,
  log: string,
  begin: number,
): CliFault {
  const reason = lastReason(log, begin)
  const unit = service.supervisor === 'systemd-user' ? `--user-unit ${service.name}` : `--unit ${service.name}`
  const why = reason === undefined ? problem : reason.msg
  return new CliFault('service_start_failed', `${words.join(' ')} failed: ${why}`, {
    details: { log, file: service.file },
    next: reason?.next ?? (service.supervisor === 'launchd' ? 'svc logs' : `journalctl ${unit}`),
  })
}

/** Notes for a person about the service. */
function notesOf(service: ServiceDefinition, { home, user }: ServiceFacts, { io }: LocalContext): string[] {
  const notes: string[] = []
  if (service.supervisor === 'systemd-user' && isLingering(user) === false)
    notes.push(`It stops when ${user} logs out. To keep it and start it with the machine: ${lingerCommand(user)}`)
  const names = secretNames(io.env).slice(0, 5)
  if (names.length > 0)
    notes.push(
      `Not captured from this shell: ${names.join(', ')}. Put the variables that agents need into ${join(home, '.env')}.`,
    )
  return notes
}
