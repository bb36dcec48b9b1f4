import type { Actor } from '../../../kernel/plugin.js'
import type { Installer } from '../../../plugins/delivery/installer/installer.js'

export const operations = ['install', 'update', 'remove'] as const
export type Operation = (typeof operations)[number]

/** Carries out an operation on the extension `demo`; `source` is its folder. */
export async function perform(installer: Installer, operation: Operation, source: string, actor: Actor): Promise<void> {
  switch (operation) {
    case 'install':
      await installer.install({ path: source }, actor)
      return
    case 'update':
      await installer.update('demo', {}, actor)
      return
    case 'remove':
      await installer.remove('demo', { purge: true }, actor)
  }
}
