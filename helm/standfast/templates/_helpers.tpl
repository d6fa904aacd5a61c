{{- define "standfast.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- $full | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What finds the pods of a component: never changed, because a StatefulSet's cannot be. */}}
{{- define "standfast.selector" -}}
app.kubernetes.io/name: standfast
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "standfast.labels" -}}
{{ include "standfast.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "standfast.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}

{{- define "standfast.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "standfast.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- define "standfast.kafkaEnv" -}}
- name: STANDFAST_KAFKA_BOOTSTRAP
  value: {{ .Values.kafka.bootstrap | quote }}
- name: STANDFAST_KAFKA_SECURITY_PROTOCOL
  value: {{ .Values.kafka.securityProtocol }}
{{- if hasPrefix "SASL" .Values.kafka.securityProtocol }}
- name: STANDFAST_KAFKA_SASL_MECHANISM
  value: {{ .Values.kafka.saslMechanism }}
{{- range $name := list "username" "password" }}
- name: STANDFAST_KAFKA_{{ upper $name }}
  valueFrom:
    secretKeyRef: {name: {{ $.Values.kafka.existingSecret }}, key: {{ $name }}}
{{- end }}
{{- end }}
{{- if .Values.kafka.caSecret }}
- name: STANDFAST_KAFKA_SSL_CAFILE
  value: /etc/standfast/ca/ca.crt
{{- end }}
{{- if .Values.kafka.certificateSecret }}
- name: STANDFAST_KAFKA_SSL_CERTFILE
  value: /etc/standfast/certificate/tls.crt
- name: STANDFAST_KAFKA_SSL_KEYFILE
  value: /etc/standfast/certificate/tls.key
{{- end }}
{{- end -}}

{{- define "standfast.secretMounts" -}}
{{- if .Values.kafka.caSecret }}
- {name: ca, mountPath: /etc/standfast/ca, readOnly: true}
{{- end }}
{{- if .Values.kafka.certificateSecret }}
- {name: certificate, mountPath: /etc/standfast/certificate, readOnly: true}
{{- end }}
{{- end -}}

{{- define "standfast.secretVolumes" -}}
{{- with .Values.kafka.caSecret }}
- {name: ca, secret: {secretName: {{ . }}, defaultMode: 0440}}
{{- end }}
{{- with .Values.kafka.certificateSecret }}
- {name: certificate, secret: {secretName: {{ . }}, defaultMode: 0440}}
{{- end }}
{{- end -}}

{{/* The file of keys, for those who read or write what is kept; the job for topics does not. */}}
{{- define "standfast.keyEnv" -}}
{{- if .Values.encryption.existingSecret -}}
- name: STANDFAST_KEY_FILE
  value: /etc/standfast/encryption/{{ .Values.encryption.key }}
{{- end -}}
{{- end -}}

{{- define "standfast.keyMount" -}}
{{- if .Values.encryption.existingSecret -}}
- {name: encryption, mountPath: /etc/standfast/encryption, readOnly: true}
{{- end -}}
{{- end -}}

{{- define "standfast.keyVolume" -}}
{{- with .Values.encryption.existingSecret -}}
- {name: encryption, secret: {secretName: {{ . }}, defaultMode: 0440}}
{{- end -}}
{{- end -}}

{{/* A volume with tokens.jsonl: the secret's, or an empty one, which lets nobody in. */}}
{{- define "standfast.tokensVolume" -}}
{{- if .Values.tokens.existingSecret -}}
- {name: tokens, secret: {secretName: {{ .Values.tokens.existingSecret }}, defaultMode: 0440}}
{{- else -}}
- {name: tokens, configMap: {name: {{ include "standfast.fullname" . }}-nobody}}
{{- end -}}
{{- end -}}

{{/* How many workers there can be: so many addresses the workers know of each other. */}}
{{- define "standfast.workersMax" -}}
{{- if .Values.autoscaling.enabled -}}
{{- max (int .Values.worker.replicas) (int .Values.autoscaling.maxReplicas) -}}
{{- else -}}
{{- int .Values.worker.replicas -}}
{{- end -}}
{{- end -}}

{{- define "standfast.workerAddress" -}}
{{- $name := printf "%s-worker" (include "standfast.fullname" .root) -}}
http://{{ .pod }}.{{ $name }}.{{ .root.Release.Namespace }}.svc:8080
{{- end -}}

{{- define "standfast.peers" -}}
{{- $peers := list -}}
{{- range $number := until (int (include "standfast.workersMax" .)) -}}
{{- $pod := printf "%s-worker-%d" (include "standfast.fullname" $) $number -}}
{{- $peers = append $peers (include "standfast.workerAddress" (dict "root" $ "pod" $pod)) -}}
{{- end -}}
{{- $peers | toJson -}}
{{- end -}}

{{- define "standfast.livez" -}}
startupProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 4
{{- end -}}

{{/* What a schema cannot say, because it lies between two values. */}}
{{- define "standfast.validate" -}}
{{- $kafka := .Values.kafka -}}
{{- if and (hasPrefix "SASL" $kafka.securityProtocol) (not $kafka.existingSecret) -}}
{{- fail (printf "kafka.existingSecret: %s needs a secret with username and password" $kafka.securityProtocol) -}}
{{- end -}}
{{- if and $kafka.existingSecret (not (hasPrefix "SASL" $kafka.securityProtocol)) -}}
{{- fail (printf "kafka.existingSecret: %s sends no username and no password" $kafka.securityProtocol) -}}
{{- end -}}
{{- if and (or $kafka.caSecret $kafka.certificateSecret) (not (hasSuffix "SSL" $kafka.securityProtocol)) -}}
{{- fail (printf "kafka.securityProtocol: %s encrypts nothing, and there are certificates" $kafka.securityProtocol) -}}
{{- end -}}
{{- if and .Values.encryption.existingSecret .Values.worker.settings.log_claims -}}
{{- fail "worker.settings.log_claims: it would write what encryption seals into the log" -}}
{{- end -}}
{{- if and (eq .Values.interpreter.kind "openai") (not .Values.interpreter.model) -}}
{{- fail "interpreter.model: the interpreter openai needs to know which model to ask" -}}
{{- end -}}
{{- if and (eq .Values.interpreter.kind "openai") (not .Values.interpreter.baseUrl) (not .Values.interpreter.existingSecret) -}}
{{- fail "interpreter.baseUrl: the interpreter openai needs an endpoint, or interpreter.existingSecret for OpenAI's" -}}
{{- end -}}
{{- $most := int (include "standfast.workersMax" .) -}}
{{- if gt $most (int .Values.topics.partitions) -}}
{{- fail (printf "topics.partitions: %d workers have nothing to do with %d partitions" $most (int .Values.topics.partitions)) -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
{{- fail "autoscaling.minReplicas: it is above maxReplicas" -}}
{{- end -}}
{{- if and .Values.serve.enabled (not .Values.serve.existingClaim) -}}
{{- fail "serve.existingClaim: the servers need a claim that has the file" -}}
{{- end -}}
{{- end -}}
