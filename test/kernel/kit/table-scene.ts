import { definePlugin, type Migration, type PluginKernel } from '../../../kernel/plugin.js'
import { boot, type TestKernel } from '../../harness/kernel.js'

/** A plugin `acme.things` with these tables, and what it was handed. */
export async function tables(
  migrations: readonly Migration[],
  options: Partial<Parameters<typeof boot>[0]> = {},
): Promise<TestKernel & { readonly own: PluginKernel }> {
  let own: PluginKernel | undefined
  class Things {
    constructor(kernel: PluginKernel) {
      own = kernel
    }
  }
  const plugin = definePlugin({ name: 'acme.things', version: '1.0.0', service: async () => Things }).surface({
    tables: migrations,
  })
  const s = await boot({ ...options, plugins: [plugin] })
  if (!own) throw new Error('the plugin did not start')
  return { ...s, own }
}
