import {
  cli,
  columnsOf,
  describe,
  runsCode,
  show,
  throws,
  tool,
  withTable,
} from '../../../kernel/kit/annotations/index.js'
import { created, definePlugin, noContent, ok, routeOf, surfaceOf, watch } from '../../../kernel/plugin.js'
import {
  BundleActivationPatch,
  BundleActivationReply,
  BundleActivationRequest,
  BundleCatalogReply,
  BundleNetworkReply,
  type DeclaredChannel,
  type InventoryItem,
  ListBundleActivationsReply,
} from '../../../schemas/bundles.js'
import { AgentKind } from '../../agents/agents/api.js'
import { undo } from '../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../desk/workspaces/api.js'
import { Extensions, ResourceFamilies } from '../extensions/api.js'
import { ActivationKind, BundleErrors, BundleKind, Bundles } from './api.js'
import { needs } from './needs.js'
import type { BundlesService } from './service.js'

const route = routeOf<BundlesService>(describe('Bundles'))
const { contribute, reconciler, tap } = surfaceOf<BundlesService>()

const activationView = withTable(
  show(BundleActivationReply, 'activation', [
    'id',
    'version',
    { of: 'extension_name', header: 'Extension' },
    { of: 'bundle_name', header: 'Bundle' },
    { of: 'profile_name', header: 'Profile' },
    { of: 'profile_description', header: 'About' },
    'scope',
    { of: 'workspace_id', header: 'Workspace' },
    { of: 'spec_drift', header: 'Changed since' },
    { of: 'network_requirement_digest', header: 'Requirement' },
    { of: 'network_requirement_confirmed_by', header: 'Confirmed by' },
    { of: 'network_requirement_confirmed_at~time', header: 'Confirmed' },
    'channels~list',
    { of: 'diagnostics~list', header: 'Not taken up' },
    'updated_at~time',
  ]),
  'inventory',
  columnsOf<InventoryItem>()([
    { of: 'resource_kind', header: 'Kind' },
    { of: 'resource_name', header: 'Name' },
    { of: 'resource_id', header: 'ID' },
  ]),
)

/** Errors of the profile that a request names. */
const ofProfile = [
  BundleErrors.bundle_extension_not_found,
  BundleErrors.bundle_not_found,
  BundleErrors.bundle_profile_not_found,
  BundleErrors.bundle_invalid,
  BundleErrors.bundle_agent_conflict,
  BundleErrors.bundle_agent_missing,
  BundleErrors.bundle_agent_reserved,
  BundleErrors.bundle_record_taken,
  BundleErrors.bundle_trigger_webhook,
  BundleErrors.bundle_version_conflict,
] as const
const ofRequest = [BundleErrors.bundle_scope_invalid, ...ofProfile, ...REFERENCE_ERRORS] as const
const unknown = throws(BundleErrors.bundle_activation_not_found)

/** Members of a request, and the command-line options that set them. */
const options = { extension_name: 'extension', bundle_name: 'bundle', profile_name: 'profile' }

export default definePlugin({
  name: 'bundles',
  version: '0.1.0',
  requires: needs,
  provides: Bundles,
  service: () => import('./service.js').then(module => module.BundlesService),
}).surface({
  kinds: [BundleKind, ActivationKind],
  errors: [BundleErrors],
  reconcilers: [
    // Records of bundles only mirror the catalog, so a change of one needs no work.
    reconciler({ kind: BundleKind, run: () => {} }),
    reconciler({
      kind: ActivationKind,
      after: [AgentKind],
      watches: [watch(BundleKind, (service, record) => service.activationsOf(record))],
      run: (service, batch) => service.reconcile(batch),
    }),
  ],
  registries: [contribute(ResourceFamilies, service => [service.family()])],
  taps: [
    tap(
      Extensions,
      extensions => extensions.disabling,
      service => name => service.disabling(name),
    ),
    tap(
      Extensions,
      extensions => extensions.changed,
      service => () => service.extensionsChanged(),
    ),
  ],
  routes: [
    route({
      method: 'GET',
      path: '/api/bundles/catalog',
      before: service => service.settled(),
      summary: 'List the bundles of loaded extensions and their profiles',
      replies: { 200: BundleCatalogReply },
      with: [
        cli('bundle catalog', {
          view: show(
            BundleCatalogReply,
            'bundles',
            [
              { of: 'extension_name', header: 'Extension' },
              { of: 'bundle_name', header: 'Bundle' },
              'profiles~list',
              { of: 'description', header: 'About' },
            ],
            { empty: 'no bundles; bundles come from extensions: svc extension list' },
          ),
        }),
        tool('bundles_list', ['bundles']),
      ],
      handle: service => ok(service.catalog()),
    }),
    route({
      method: 'POST',
      path: '/api/bundles/preview',
      audited: false,
      before: service => service.settled(),
      summary: 'Show what an activation would do, without changing anything',
      body: BundleActivationRequest,
      replies: { 200: BundleActivationReply },
      with: [
        cli('bundle preview', { options, view: activationView }),
        tool('bundles_preview', ['bundles'], { risk: 'read' }),
        runsCode(false),
        throws(BundleErrors.bundle_activation_exists, ...ofRequest),
      ],
      handle: async (service, { actor, body }) => ok({ activation: await service.preview(body, actor) }),
    }),
    route({
      method: 'GET',
      path: '/api/bundles/activations',
      before: service => service.settled(),
      summary: 'List active profiles',
      replies: { 200: ListBundleActivationsReply },
      with: [
        cli('bundle list', {
          view: show(
            ListBundleActivationsReply,
            'activations',
            [
              'id',
              { of: 'extension_name', header: 'Extension' },
              { of: 'bundle_name', header: 'Bundle' },
              { of: 'profile_name', header: 'Profile' },
              'scope',
              { of: 'workspace_id', header: 'Workspace' },
              'version',
              'updated_at~ago',
            ],
            { empty: 'no active profiles; list available ones: svc bundle catalog' },
          ),
        }),
        tool('bundles_status', ['bundles']),
      ],
      handle: (service, { actor }) => ok({ activations: service.list(actor) }),
    }),
    route({
      method: 'POST',
      path: '/api/bundles/activations',
      before: service => service.settled(),
      summary: 'Activate a profile: its agents, jobs, triggers, layouts and bridges',
      body: BundleActivationRequest,
      replies: { 201: BundleActivationReply },
      with: [
        undo({ by: 'delete', of: 'activation.id' }),
        cli('bundle activate', { options, view: activationView }),
        tool('bundles_activate', ['bundles']),
        throws(BundleErrors.bundle_activation_exists, BundleErrors.bundle_confirmation_required, ...ofRequest),
      ],
      handle: async (service, { actor, body }) => created({ activation: await service.activate(body, actor) }),
    }),
    route({
      method: 'GET',
      path: '/api/bundles/activations/{id}',
      before: service => service.settled(),
      summary: 'Show an activation and everything it created',
      replies: { 200: BundleActivationReply },
      with: [cli('bundle get', { view: activationView }), tool('bundles_info', ['bundles']), unknown],
      handle: (service, { actor, params }) => ok({ activation: service.get(params.id, actor) }),
    }),
    route({
      method: 'PATCH',
      path: '/api/bundles/activations/{id}',
      before: service => service.settled(),
      summary: 'Update an activation to the current profile, and confirm the network requirements of its extension',
      body: BundleActivationPatch,
      replies: { 200: BundleActivationReply },
      with: [
        undo({ by: 'never', why: 'the former profile is not kept; activate it again: svc bundle activate' }),
        cli('bundle update', { view: activationView }),
        tool('bundles_update', ['bundles']),
        throws(BundleErrors.bundle_confirmation_required, ...ofProfile),
        unknown,
      ],
      handle: async (service, { actor, params, body }) =>
        ok({ activation: await service.update(params.id, body, actor) }),
    }),
    route({
      method: 'DELETE',
      path: '/api/bundles/activations/{id}',
      summary: 'Deactivate a profile and remove what its activation created',
      essential: true,
      replies: { 204: null },
      with: [
        undo({ by: 'never', why: 'activate it again to create its contents anew: svc bundle activate' }),
        cli('bundle deactivate', { done: 'deactivated {id}' }),
        tool('bundles_deactivate', ['bundles']),
        unknown,
      ],
      handle: async (service, { actor, params }) => {
        await service.deactivate(params.id, actor)
        return noContent()
      },
    }),
    route({
      method: 'GET',
      path: '/api/bundles/network/settings',
      before: service => service.settled(),
      summary: 'List the network channels that active profiles declare; none is joined',
      replies: { 200: BundleNetworkReply },
      with: [
        cli('bundle network-settings', {
          view: {
            rows: 'network.declared_channels',
            columns: columnsOf<DeclaredChannel>()([
              { of: 'name', header: 'Channel' },
              'primary',
              { of: 'extension_name', header: 'Extension' },
              { of: 'bundle_name', header: 'Bundle' },
              { of: 'profile_name', header: 'Profile' },
              { of: 'workspace_id', header: 'Workspace' },
              { of: 'description', header: 'About' },
            ]),
            empty: 'no active profile declares a channel',
          },
        }),
      ],
      handle: service => ok(service.networkSettings()),
    }),
  ],
})
