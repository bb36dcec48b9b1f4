import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import type { Context } from './context.js'
import { pause } from './measure.js'

/** A home of its own, any port; the environment for whoever works with it. */
export function makeHome(temp: string, name: string): { home: string; socket: string; env: NodeJS.ProcessEnv } {
  const home = path.join(temp, name)
  mkdirSync(home, { mode: 0o700 })
  writeFileSync(path.join(home, 'config.json'), '{ "http": { "port": 0 } }')
  return { home, socket: path.join(home, 'daemon.sock'), env: { ...process.env, SVC_HOME: home } }
}

/** Starts the daemon of the build; resolves when it answers. With `gaps` it tells of its event loop. */
export async function startDaemon(
  { root, program }: Context,
  { home, socket, env }: ReturnType<typeof makeHome>,
  { gaps = false } = {},
) {
  const main = path.join(root, 'dist/daemon.cjs')
  if (!existsSync(main)) throw new Error('there is no dist/daemon.cjs; run `npm run build` first')
  const gapFile = path.join(home, 'gap')
  const { NODE_FLAGS = [] } = await import(path.join(root, 'cli/daemon/daemon-arguments.ts'))
  const child = spawn(process.execPath, [...NODE_FLAGS, ...(gaps ? ['--import', program('daemon-gap')] : []), main], {
    env: { ...env, SVC_BENCH_GAP: gapFile },
    stdio: 'ignore',
  })
  const exited = once(child, 'exit')
  while (!(await answers(socket, '/api/status/identity'))) {
    if (child.exitCode !== null) throw new Error(`the daemon ended with ${child.exitCode}`)
    await pause(2)
  }
  return {
    pid: child.pid as number,
    /** Milliseconds of the longest gap since the last call. */
    async longestGap(): Promise<number> {
      rmSync(gapFile, { force: true })
      child.kill('SIGUSR2')
      while (!existsSync(gapFile)) await pause(5)
      return Number(readFileSync(gapFile, 'utf8'))
    },
    stop: () => child.kill('SIGTERM') && exited,
  }
}

/** Whether a GET over that socket gives 200. */
export function answers(socketPath: string, url: string): Promise<boolean> {
  return new Promise(resolve => {
    const request = http.get({ socketPath, path: url }, response => {
      response.resume()
      response.once('end', () => resolve(response.statusCode === 200))
    })
    request.once('error', () => resolve(false))
  })
}
