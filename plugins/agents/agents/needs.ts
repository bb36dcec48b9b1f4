import { Host, type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Trust } from '../../access/trust/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Providers } from '../providers/api.js'

/** Dependencies of the plugin. */
export const needs = { workspaces: Workspaces, providers: Providers, trust: maybe(Trust), host: Host }
export type K = KernelOf<typeof needs>
