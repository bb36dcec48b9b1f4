import path from 'node:path'
import { type Daemon, NAME, writeKit } from './demo-kit.js'

export const acts = ['enable', 'disable', 'reload', 'purge'] as const
export type Act = (typeof acts)[number]

/** What the extension is when it begins. */
export const before = { enable: 'disabled', disable: '1.0.0', reload: '1.0.0', purge: '1.0.0' } as const

/** What the extension is when all of it is done. */
export const after = { enable: '1.0.0', disable: 'disabled', reload: '2.0.0', purge: 'absent' } as const

/** Carries out an operation by its route. @param folder of all extensions */
export async function perform(daemon: Daemon, act: Act, folder: string, pids: string): Promise<void> {
  const url = `/api/extensions/${NAME}`
  if (act === 'reload') writeKit(path.join(folder, NAME), '2.0.0', pids)
  const { status, body } =
    act === 'purge'
      ? await daemon.request('DELETE', `${url}?purge=true`)
      : await daemon.request('POST', `${url}/${act}`, act === 'reload' ? {} : undefined)
  if (status !== 200) throw new Error(`${act}: ${status} ${JSON.stringify(body)}`)
}
