import { Callers } from '../../../kernel/platform.js'
import type { KernelOf } from '../../../kernel/plugin.js'

/** APIs that the plugin requires. */
export const needs = { callers: Callers }
export type K = KernelOf<typeof needs>
