import * as v from 'valibot'
import { messageOf, within } from '../../../../kernel/plugin.js'
import type { ControlProcess, HostCall } from '../../../delivery/extensions/api.js'
import { BridgeErrors, type Examined, type StateReport, type VerifyCheck } from '../api.js'
import type { K } from '../needs.js'
import { checked, defined, ReportParams, Verified } from './schemas.js'

/** Milliseconds for a process to report the state of an instance, and to answer with its checks. */
const REPORT_MS = 8000
const VERIFY_MS = 8000
/** Seconds until an event that a check refuses may be sent again. */
const LATER = 60
const VERIFY = 'bridges/verify'

/** Methods that a process may call during a check: access to its own data. */
export const PASSES: readonly string[] = ['state/get', 'state/list', 'state/put', 'state/delete', 'secrets/get']

/** State of one instance from an adapter's process that does not serve it. */
export class Examination {
  #state: StateReport | undefined
  #reportState: () => void = () => {}
  readonly #isTold = new Promise<void>(resolve => {
    this.#reportState = resolve
  })

  constructor(
    private readonly clock: K['clock'],
    private readonly instanceId: string,
  ) {}

  /** Methods for the process. Events are refused with a retry, so that the platform or process keeps them. */
  readonly methods: ReadonlyMap<string, (call: HostCall) => Promise<unknown>> = new Map([
    ['bridges/instances/report_state', (call: HostCall) => this.#reported(call)],
    ['bridges/messages/ingest', refuse],
    ['bridges/deliveries/report', refuse],
  ])

  /** Resolves with the reported state and the checks. */
  async of(process: ControlProcess): Promise<Examined> {
    await within(this.clock, REPORT_MS, this.#isTold).catch(() => {})
    const checks = await this.#checks(process)
    return { ...(this.#state && { state: this.#state }), checks }
  }

  async #checks(process: ControlProcess): Promise<readonly VerifyCheck[]> {
    if (!process.implements(VERIFY)) return []
    try {
      const answer = await process.call(VERIFY, { bridge_instance_id: this.instanceId }, VERIFY_MS)
      return v.parse(Verified, answer).checks
    } catch (error) {
      return [{ check: 'adapter', status: 'fail', remediation: `its checks failed: ${messageOf(error)}` }]
    }
  }

  async #reported({ params }: HostCall): Promise<unknown> {
    const { bridge_instance_id: id, ...state } = checked(ReportParams, params)
    if (id !== this.instanceId)
      throw BridgeErrors.bridge_not_found(`the bridge ${JSON.stringify(id)} is not part of this check`)
    this.#state = defined(state) as StateReport
    if (state.status !== 'starting') this.#reportState()
    return {}
  }
}

async function refuse(): Promise<never> {
  throw BridgeErrors.bridge_not_accepting('the bridge is disabled and its adapter runs only for a check', {
    retryAfter: LATER,
  })
}
