import { type MaybeToken, messageOf, type PluginKernel } from '../../../kernel/plugin.js'
import type { Processes, ProcessHandle, SpawnRequest } from '../../platform/processes/api.js'
import type { ConfinementApi, ProgramSandbox } from './api.js'

type SpawnKernel = Pick<
  PluginKernel<{ processes: typeof Processes; sandboxes: MaybeToken<ConfinementApi> }>,
  'needs' | 'log'
>

/**
 * Starts a program in a sandbox, never without one. For `id`, see {@link ConfinementApi.encloseProgram}.
 * @throws Fault `sandbox_unusable`, `sandbox_profile_not_found`; an Error if the plugin `sandboxes` does not run
 */
export async function spawnConfined(
  { needs, log }: SpawnKernel,
  id: string,
  sandbox: ProgramSandbox,
  request: SpawnRequest,
): Promise<ProcessHandle> {
  const sandboxes = needs.sandboxes.current
  if (!sandboxes) throw new Error('it must run in a sandbox, but the plugin sandboxes is not active')
  const { ended, ...enclosed } = await sandboxes.encloseProgram(id, sandbox, request)
  const putAside = () =>
    void ended().catch(error =>
      log.error(`files that ${request.label} left in its sandbox were not renamed`, { error: messageOf(error) }),
    )
  try {
    const handle = await needs.processes.spawn({ ...request, ...enclosed })
    void handle.exited.then(putAside)
    return handle
  } catch (error) {
    putAside()
    throw error
  }
}
