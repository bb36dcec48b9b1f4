import { definePlugin, surfaceOf } from '../../../kernel/plugin.js'
import { SecretOwners } from '../../access/vault/api.js'
import { BridgeInstanceKind } from './api.js'

const { contribute } = surfaceOf()

/** Bridge instances are stored, checked and listed; nothing runs them yet. */
export default definePlugin({ name: 'bridges', version: '0.1.0' }).surface({
  kinds: [BridgeInstanceKind],
  registries: [
    contribute(SecretOwners, () => [
      { what: 'bridge', deleted: { record: BridgeInstanceKind.name }, paths: id => [`bridges/${id}`] },
    ]),
  ],
})
