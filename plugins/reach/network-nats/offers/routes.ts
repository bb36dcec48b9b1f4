import { cli, describe, runsCode, show, throws } from '../../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../../kernel/kit/collection.js'
import { noContent, ok, routeOf } from '../../../../kernel/plugin.js'
import {
  AcceptOffersBody,
  ListRemoteOffersReply,
  OfferAcceptanceReply,
  OfferTaskBody,
  RemoteOfferReply,
} from '../../../../schemas/network/offers.js'
import { AgentErrors } from '../../../agents/agents/api.js'
import { undo } from '../../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { ConfigErrors } from '../../../platform/configuration/api.js'
import { TaskErrors } from '../../../work/tasks/api.js'
import { RemoteErrors } from '../api.js'
import type { RemoteService } from '../service.js'

const ACCEPTANCE = ['agent', 'workspace', 'at_once', { of: 'peers~list', header: 'Only of' }] as const
const about = describe('Network')
// No `runsCode(false)`: accepting offers lets peers run code here, and offering a task discloses its text.
const route = routeOf<RemoteService>(about)
const WRITING = [ConfigErrors.config_changed, ConfigErrors.config_file_invalid, ConfigErrors.setting_invalid]

const offer = collectionOf<RemoteService>(about)({
  path: '/api/network/remote/offers',
  key: 'task_id',
  noun: 'network offers',
  one: [RemoteOfferReply, 'offer'],
  many: [ListRemoteOffersReply, 'offers'],
  show: [
    'direction',
    'state',
    'peer',
    'attempt',
    { of: 'task_id', header: 'Task' },
    'title',
    'offered_at~ago',
    { of: 'error', header: 'Error', below: true },
  ],
  argument: { summary: 'ID of the task' },
  missing: RemoteErrors.remote_offer_not_found,
})

export const offerRoutes = [
  offer.list({
    summary: 'List task offers to and from other daemons',
    command: 'network offers',
    empty: 'no offers; offer a task: svc network offer <task>',
    handle: service => service.listOffers(),
  }),
  offer.create({
    summary: 'Offer a task to the daemons of the realm',
    command: 'network offer',
    with: [undo({ by: 'never', why: 'another daemon may work on it; withdraw it: svc network withdraw' })],
    cli: { args: [{ name: 'task', in: 'body', summary: 'ID of the task' }] },
    throws: [
      RemoteErrors.remote_off,
      RemoteErrors.remote_offer_exists,
      RemoteErrors.remote_offer_invalid,
      TaskErrors.task_not_found,
      TaskErrors.task_conflict,
      TaskErrors.task_run_open,
      TaskErrors.task_attempts_exhausted,
    ],
    body: OfferTaskBody,
    handle: async (service, { body, actor }) => ({ offer: await service.offer(body, actor) }),
  }),
  offer.delete({
    summary: 'Withdraw the offer of a task; sessions of this daemon can claim the task again',
    command: 'network withdraw',
    with: [undo({ by: 'never', why: 'offer it again: svc network offer' })],
    done: 'the offer of {task_id} is withdrawn',
    handle: (service, { params, actor }) => service.withdraw(params.task_id, actor),
  }),
  route({
    method: 'PUT',
    path: '/api/network/remote/acceptance',
    summary: 'Accept task offers of other daemons for an agent',
    body: AcceptOffersBody,
    replies: { 200: OfferAcceptanceReply },
    with: [
      undo({ by: 'never', why: 'tasks may already be accepted; accept no more: svc network refuse-offers' }),
      throws(
        ...REFERENCE_ERRORS,
        ...WRITING,
        AgentErrors.agent_not_found,
        AgentErrors.agent_invalid,
        AgentErrors.agent_not_runnable,
        RemoteErrors.remote_peer_not_found,
      ),
      cli('network accept-offers', {
        workspace: 'workspace',
        view: show(OfferAcceptanceReply, 'accepts', ACCEPTANCE),
      }),
    ],
    handle: async (service, { body, actor }) => ok({ accepts: await service.accept(body, actor) }),
  }),
  route({
    method: 'DELETE',
    path: '/api/network/remote/acceptance',
    summary: 'Accept no more offers of other daemons; accepted tasks are finished',
    replies: { 204: null },
    with: [
      undo({ by: 'never', why: 'accept offers again: svc network accept-offers' }),
      runsCode(false),
      throws(...WRITING),
      cli('network refuse-offers', { done: 'no more offers are accepted' }),
    ],
    handle: async (service, { actor }) => {
      await service.refuse(actor)
      return noContent()
    },
  }),
]
