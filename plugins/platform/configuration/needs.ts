import { SettingValues } from '../../../kernel/platform.js'
import { Faults, Host, type KernelOf } from '../../../kernel/plugin.js'

/** APIs that the plugin requires. */
export const needs = { values: SettingValues, report: Faults, host: Host }
export type K = KernelOf<typeof needs>
