import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../e2e/installed.js'

/** Milliseconds: many times what a boot of a few units takes. */
const PATIENCE_MS = 60_000
const SYSTEMD = '/lib/systemd/systemd'
const TARGETS = [
  'sysinit',
  'basic',
  'shutdown',
  'network',
  'sockets',
  'multi-user',
  'default',
  'exit',
  'final',
  'umount',
]

/**
 * Boots systemd as the first process of its own namespaces. It knows no unit but those in its folder, so that it runs nothing of the
 * machine: what cleans /tmp, mounts and sets the clock is none of its units. The file systems are those of the machine, with /run, /proc
 * and /sys/fs/cgroup of its own.
 */
const BOOT = `
set -e
mount --make-rprivate /
umount -R /sys/fs/cgroup 2>/dev/null || umount -l /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/user /run/lock
mount -t proc proc /proc
export container=test SYSTEMD_UNIT_PATH="$1" SYSTEMD_GENERATOR_PATH=/nonexistent
exec ${SYSTEMD} --system --unit=test.target --log-target=console --show-status=0
`

/** Why it cannot be booted here; undefined where it can. */
export function whyNoSystemd(): string | undefined {
  if (process.platform !== 'linux') return 'this is no Linux'
  if (!existsSync(SYSTEMD)) return 'systemd is not installed'
  if (process.getuid?.() !== 0) return 'only root can make the namespaces'
  const { status } = spawnSync('unshare', ['-m', '-p', '-f', '-C', '-i', '-u', 'sh', '-c', CGROUPS])
  return status === 0 ? undefined : 'there are no namespaces and cgroups of our own'
}

const CGROUPS = 'mount --make-rprivate / && umount -l /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup'

/** A systemd of a test. */
export class Systemd {
  /** Units of the machine's manager. */
  readonly units: string
  #pid = 0
  readonly #child: ChildProcess
  #log = ''

  private constructor(
    readonly folder: string,
    cgroup: string,
  ) {
    this.units = join(folder, 'units')
    mkdirSync(this.units, { recursive: true })
    for (const name of [...TARGETS, 'test']) this.unit(`${name}.target`, '[Unit]\nDefaultDependencies=no\n')
    const enter = `echo $$ > ${cgroup}/cgroup.procs; exec unshare -m -p -f -C -i -u sh -c "$0" sh "$1"`
    this.#child = spawn('sh', ['-c', enter, BOOT, this.units], { stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding('utf8').on('data', text => {
        this.#log += text
      })
  }

  static async boot(folder: string): Promise<Systemd> {
    const cgroup = join(cgroupMount(), `svc-test-${process.pid}`)
    mkdirSync(cgroup, { recursive: true })
    const systemd = new Systemd(folder, cgroup)
    await until(
      () => systemd.#booted(),
      PATIENCE_MS,
      () => `systemd boots:\n${systemd.#log}`,
    )
    return systemd
  }

  unit(name: string, text: string): void {
    writeFileSync(join(this.units, name), text)
  }

  /** Runs a program beside it, as a user where one is named. */
  run(argv: readonly string[], env: Readonly<Record<string, string>>, user?: string) {
    return spawnSync('nsenter', this.#words(argv, env, user), { encoding: 'utf8', timeout: PATIENCE_MS })
  }

  /** The same for what talks to this process. */
  runLater(
    argv: readonly string[],
    env: Readonly<Record<string, string>>,
    user?: string,
  ): Promise<{ status: number | null; stdout: string; stderr: string }> {
    return new Promise(resolve => {
      execFile('nsenter', this.#words(argv, env, user), { timeout: PATIENCE_MS }, (error, stdout, stderr) =>
        resolve({ status: error === null ? 0 : Number(error.code ?? 1), stdout, stderr }),
      )
    })
  }

  #words(argv: readonly string[], env: Readonly<Record<string, string>>, user?: string): string[] {
    const as = user === undefined ? [] : ['setpriv', `--reuid=${user}`, '--regid=nogroup', '--clear-groups']
    const words = ['-t', String(this.#pid), '-m', '-p', '-C', '-i', '-u', '--', ...as, 'env', '-i']
    const pairs = Object.entries(env).map(([name, value]) => `${name}=${value}`)
    return [...words, ...pairs, ...argv]
  }

  /** Standard output of systemctl, which must succeed. */
  systemctl(...words: string[]): string {
    const { status, stdout, stderr } = this.run(['systemctl', ...words], { PATH: process.env.PATH ?? '' })
    if (status !== 0) throw new Error(`systemctl ${words.join(' ')}: ${stderr}\n${this.#log.slice(-2000)}`)
    return stdout
  }

  property(unit: string, name: string): string {
    return this.systemctl('show', `--property=${name}`, '--value', unit).trim()
  }

  get log(): string {
    return this.#log
  }

  /** Ends it and with it every process of its namespace. */
  async end(): Promise<void> {
    const ended = new Promise(resolve => this.#child.once('close', resolve))
    if (this.#pid > 0) process.kill(this.#pid, 'SIGKILL')
    else this.#child.kill('SIGKILL')
    await ended
  }

  #booted(): true | undefined {
    const children = readFileSync(`/proc/${this.#child.pid}/task/${this.#child.pid}/children`, 'utf8')
    const pid = Number(children.trim().split(' ')[0])
    if (!(pid > 0) || !readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(SYSTEMD)) return undefined
    this.#pid = pid
    return (
      this.run(['systemctl', 'is-active', 'test.target'], { PATH: process.env.PATH ?? '' }).status === 0 || undefined
    )
  }
}

function cgroupMount(): string {
  const lines = execFileSync('findmnt', ['-rn', '-t', 'cgroup2', '-o', 'TARGET'], { encoding: 'utf8' })
  return lines.split('\n')[0] ?? '/sys/fs/cgroup'
}
