import type * as v from 'valibot'
import type { Setting } from '../contract/surface.js'

/** Declares a setting in a section: its name, the schema of its value and its default. */
export type SectionSetting = <T>(name: string, schema: v.GenericSchema<unknown, T>, initial: NoInfer<T>) => Setting<T>

/** Declares settings that share a path prefix, a section and the moment at which a change takes effect. */
export function settingsSection({ path, ...rest }: Pick<Setting, 'path' | 'section' | 'apply'>): SectionSetting {
  return (name, schema, initial) => ({ path: `${path}.${name}`, ...rest, schema, default: initial })
}
