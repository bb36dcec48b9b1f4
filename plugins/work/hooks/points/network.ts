import { maybe, surfaceOf, type Tap } from '../../../../kernel/plugin.js'
import type { HookEvent } from '../../../../schemas/hooks.js'
import type { ParticipationRequest } from '../../../../schemas/network.js'
import { type HappeningName, Network, points } from '../../../reach/network/api.js'
import type { HooksService } from '../service.js'

const { tap } = surfaceOf<HooksService>()

const HAPPENINGS = [
  ...(['messagePersisted', 'threadOpened', 'directOpened', 'peerJoined', 'peerLeft'] as const),
  ...(['workOpened', 'workTransitioned', 'workClosed'] as const),
] satisfies readonly HappeningName[]

/** Taps on the network, which is optional. */
export const networkTaps: readonly Tap<HooksService>[] = [
  ...HAPPENINGS.map(name =>
    tap(
      maybe(Network),
      network => network[name],
      service => happening => service.announce(points[name].name as HookEvent, happening.workspace_id, happening),
    ),
  ),
  tap(
    maybe(Network),
    network => network.preResolve,
    service => async wish => {
      const event = 'network.participation.pre_resolve'
      if (!service.has(event)) return undefined
      const { owner, workspaceId, taskId, source, request } = wish
      const { deny, payload } = await service.dispatch(
        event,
        { workspaceId },
        {
          ...{
            owner,
            workspace_id: workspaceId,
            participation_mode: request.mode,
            participation_source: source,
            request,
          },
          ...(request.mode === 'live' && request.channel_strategy === 'named' && { channel: request.channel_id }),
          ...(taskId !== undefined && { task_id: taskId }),
        },
      )
      return deny === undefined ? { ...wish, request: payload.request as ParticipationRequest } : { ...wish, deny }
    },
  ),
  tap(
    maybe(Network),
    network => network.resolved,
    service =>
      ({ owner, workspaceId, resolved }) =>
        service.announce('network.participation.resolved', workspaceId, {
          ...{ owner, workspace_id: workspaceId ?? '', resolved },
          ...{ participation_mode: resolved.mode, participation_source: resolved.source },
          ...(resolved.mode === 'live' && { channel: resolved.channel_id }),
        }),
  ),
]
