import { apiPage } from './api.js'
import { errorsPage } from './errors.js'
import { hooksPage } from './hooks.js'
import { hostApiPage } from './host-api.js'
import { manifestPage } from './manifest.js'
import { metricsPage } from './metrics.js'
import { registriesPage } from './registries.js'

/** The pages of docs/reference by file name. */
export async function pages(): Promise<Record<string, string>> {
  return {
    'api.md': apiPage(),
    'errors.md': errorsPage(),
    'hooks.md': hooksPage(),
    'host-api.md': hostApiPage(),
    'manifest.md': manifestPage(),
    'metrics.md': metricsPage(),
    'registries.md': registriesPage(),
  }
}
