import type { KernelOf } from '../../../kernel/plugin.js'
import { Vault } from '../../access/vault/api.js'
import { Daemon } from '../../desk/daemon/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Reconcile } from '../../platform/reconcile/api.js'

/** What the plugin requires. */
export const needs = { daemon: Daemon, events: Events, reconcile: Reconcile, vault: Vault, workspaces: Workspaces }
export type K = KernelOf<typeof needs>
