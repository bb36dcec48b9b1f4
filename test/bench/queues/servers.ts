import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { pause } from '../measure.js'

/** A server that runs for the bench alone; its folder goes with it. */
export interface Server {
  /** Where its files and sockets are. */
  readonly folder: string
  readonly port: number
  stop(): Promise<void>
}

const START_MS = 30_000
const DEBIAN = '/usr/lib/postgresql'

/** A program on the path; undefined where there is none. */
function programOf(name: string): string | undefined {
  const folders = (process.env.PATH ?? '').split(':')
  return folders.map(folder => path.join(folder, name)).find(file => existsSync(file))
}

/** PostgreSQL with its own settings, which sync each commit, on a Unix socket; why there is none, in words. */
export async function startPostgres(): Promise<Server | string> {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : []
  const bins = versions.map(version => path.join(DEBIAN, version, 'bin'))
  const bin = bins.find(folder => existsSync(path.join(folder, 'initdb'))) ?? path.dirname(programOf('initdb') ?? '')
  if (bin === '.') return 'there is no initdb; install postgresql'
  const who = ownerOf('postgres')
  if (typeof who === 'string') return who
  const folder = temporary(who)
  const options = { ...who, cwd: folder, env: { PATH: process.env.PATH, LC_ALL: 'C' } }
  const data = path.join(folder, 'data')
  const init = ['-D', data, '-U', 'postgres', '-A', 'trust', '--encoding', 'UTF8', '--locale', 'C']
  const { status, stderr } = spawnSync(path.join(bin, 'initdb'), init, { ...options, encoding: 'utf8' })
  if (status !== 0) return `initdb failed: ${stderr?.trim().split('\n').at(-1)}`
  const settings = ['fsync=on', 'synchronous_commit=on', 'max_connections=200'].flatMap(setting => ['-c', setting])
  const args = ['-D', data, '-k', folder, '-h', '', ...settings]
  const child = spawn(path.join(bin, 'postgres'), args, { ...options, stdio: 'ignore' })
  return started('postgres', child, folder, 0, path.join(folder, '.s.PGSQL.5432'), 'SIGINT')
}

/** Redis that syncs its log after each write, on a Unix socket; why there is none, in words. */
export async function startRedis(): Promise<Server | string> {
  const program = programOf('redis-server')
  if (program === undefined) return 'there is no redis-server; install redis-server'
  const folder = temporary({})
  const socket = path.join(folder, 'redis.sock')
  const args = [
    '--port',
    '0',
    '--unixsocket',
    socket,
    '--dir',
    folder,
    '--appendonly',
    'yes',
    '--appendfsync',
    'always',
  ]
  const child = spawn(program, [...args, '--save', '', '--maxmemory-policy', 'noeviction'], { stdio: 'ignore' })
  return started('redis-server', child, folder, 0, socket, 'SIGTERM')
}

/** beanstalkd that syncs its log at each write; why there is none, in words. */
export async function startBeanstalkd(): Promise<Server | string> {
  const program = programOf('beanstalkd')
  if (program === undefined) return 'there is no beanstalkd; install beanstalkd'
  const folder = temporary({})
  const port = await freePort()
  const child = spawn(program, ['-l', '127.0.0.1', '-p', String(port), '-b', folder, '-f', '0'], { stdio: 'ignore' })
  return started('beanstalkd', child, folder, port, port, 'SIGTERM')
}

/** PostgreSQL refuses to run as root: then it is the user of its package. */
function ownerOf(name: string): { uid?: number; gid?: number } | string {
  if (process.getuid?.() !== 0) return {}
  const [uid, gid] = ['-u', '-g'].map(flag => spawnSync('id', [flag, name], { encoding: 'utf8' }))
  if (uid?.status !== 0 || gid?.status !== 0) return `it does not run as root, and there is no user ${name}`
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
}

function temporary({ uid, gid }: { uid?: number; gid?: number }): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'svc-queue-'))
  chmodSync(folder, 0o700)
  if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid)
  mkdirSync(folder, { recursive: true })
  return folder
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  server.close()
  return port
}

async function started(
  name: string,
  child: ChildProcess,
  folder: string,
  port: number,
  at: string | number,
  signal: NodeJS.Signals,
): Promise<Server | string> {
  let failed: string | undefined
  child.once('error', error => {
    failed = error.message
  })
  const end = () => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', end)
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null && child.kill(signal)) await exited
    process.off('exit', end)
    rmSync(folder, { recursive: true, force: true })
  }
  const until = performance.now() + START_MS
  while (!(await accepts(at))) {
    if (child.exitCode !== null) failed ??= `it ended with ${child.exitCode}`
    if (performance.now() > until) failed ??= 'it does not answer'
    if (failed === undefined) {
      await pause(20)
      continue
    }
    child.kill('SIGKILL')
    await stop()
    return `${name} does not start: ${failed}`
  }
  return { folder, port, stop }
}

function accepts(at: string | number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = typeof at === 'string' ? net.connect(at) : net.connect(at, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
