export { BridgeInstanceKind, BridgeInstanceSpec, RoutingPolicy, routingProblem, SecretSlot } from './bridge-kind.js'
