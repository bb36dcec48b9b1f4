import { Host, type KernelOf } from '../../../kernel/plugin.js'

/** Required services of the plugin. */
export const needs = { host: Host }
export type K = KernelOf<typeof needs>
