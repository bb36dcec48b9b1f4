import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Plugin } from '../../../../kernel/plugin.js'
import { hooks, settings } from '../../../../plugins/index.js'
import { eventually, openWorld, type World, type WorldOptions } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

export interface Scene extends World {
  /** Runs of hooks about a session, `none` for those about none. */
  runs(session: string, query?: string): Promise<readonly Reply[]>
  /** Waits for a run that a predicate wants. */
  ran(session: string, wanted: (run: Reply) => boolean): Promise<Reply>
  /** Writes a program into the home and returns its path. */
  program(name: string, text: string): Promise<string>
  /** Declares hooks in the settings; they are in force when it resolves. */
  configure(declared: Record<string, unknown>): Promise<void>
}

/** A daemon with sessions and hooks; `declared` are those of its configuration. */
export async function openScene(
  declared: Record<string, unknown> = {},
  { plugins = [], ...options }: WorldOptions & { plugins?: readonly Plugin[] } = {},
): Promise<Scene> {
  const world = await openWorld({ ...options, config: { hooks: declared }, plugins: [hooks, settings, ...plugins] })
  const runs: Scene['runs'] = async (session, query = '') =>
    (await world.kernel.request('GET', `/api/workspaces/${world.workspaceId}/hooks/runs?session=${session}${query}`))
      .body.runs
  return Object.assign(Object.create(world) as World, {
    runs,
    ran: (session: string, wanted: (run: Reply) => boolean) =>
      eventually(async () => (await runs(session, '&last=1000')).find(wanted), `a run of a hook of ${session}`),
    async program(name: string, text: string) {
      const file = path.join(world.home, 'programs', name)
      await mkdir(path.dirname(file), { recursive: true })
      await writeFile(file, text, { mode: 0o755 })
      return file
    },
    async configure(wanted: Record<string, unknown>) {
      for (const [name, declaration] of Object.entries(wanted)) {
        const body = { declaration: { matcher: {}, ...(declaration as object), name } }
        const { status, body: outcome } = await world.kernel.request('PUT', `/api/settings/hooks/${name}`, body)
        if (status !== 200 || !outcome.applied) throw new Error(`${name}: ${status} ${JSON.stringify(outcome)}`)
      }
    },
    close: () => world.close().finally(() => rm(path.join(world.home, 'programs'), { recursive: true, force: true })),
  })
}

/** A program in Python that stays: `answer` is the body of a function of `event` and `p`, the payload. */
export const warmPython = (answer: string) => `#!/usr/bin/env python3
import json, sys, time, os
def answer(event, p):
${answer
  .split('\n')
  .map(line => `    ${line}`)
  .join('\n')}
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], "patch": answer(asked["event"], asked["payload"])}), flush=True)
`
