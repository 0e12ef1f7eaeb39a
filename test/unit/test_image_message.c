// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_image_message.c - images with a correct header and odd content
 *
 * The messages are put together by hand, field by field, as no encoder would.
 */
#include "image_bytes.h"

#include "residency.pb-c.h"

static struct bytes wrap_message(const ResidencyImage *message)
{
	size_t size = residency_image__get_packed_size(message);
	uint8_t *packed = malloc(size ? size : 1);
	struct bytes image;

	assert_non_null(packed);
	residency_image__pack(message, packed);
	image = wrap(packed, size);
	free(packed);
	return image;
}

/* A message with one object, one mapping and one run, all of it right. */
struct message {
	ResidencyImage image;
	ResidencyObject object[2];
	ResidencyObject *objects[2];
	ResidencyRef ref;
	ResidencyRef *refs[1];
	uint64_t run[4];
};

static void message_init(struct message *msg)
{
	*msg = (struct message){
		.image = RESIDENCY_IMAGE__INIT,
		.object = { RESIDENCY_OBJECT__INIT, RESIDENCY_OBJECT__INIT },
		.objects = { &msg->object[0], &msg->object[1] },
		.ref = RESIDENCY_REF__INIT,
		.refs = { &msg->ref },
		.run = { 10 << 2 | 2 },
	};
	msg->image.page_size = (uint32_t)page_size();
	msg->image.n_object = 1;
	msg->image.object = msg->objects;
	for (int i = 0; i < 2; i++) {
		msg->object[i].kind = RESIDENCY_KIND__RK_MEMFD;
		msg->object[i].shmid = 5 + (uint64_t)i;
		msg->object[i].size = 10 * page_size();
	}
	msg->object[0].n_run = 1;
	msg->object[0].run = msg->run;
	msg->object[0].n_ref = 1;
	msg->object[0].ref = msg->refs;
	msg->ref.pid = 1;
	msg->ref.has_start = msg->ref.has_end = msg->ref.has_offset = 1;
	msg->ref.start = page_size();
	msg->ref.end = 11 * page_size();
}

static void message_ok(const struct message *msg)
{
	struct bytes image = wrap_message(&msg->image);
	struct shm_objects objects = { 0 };

	assert_accepted(&image, &objects);
	objects_free(&objects);
	free(image.data);
}

static void message_bad(struct message *msg, const char *reason)
{
	struct bytes image = wrap_message(&msg->image);

	assert_refused(&image, reason);
	free(image.data);
	message_init(msg);
}

static void test_wrong_runs(void **state)
{
	struct message msg;

	(void)state;
	message_init(&msg);
	message_ok(&msg);
	msg.run[0] = 2;
	message_bad(&msg, "run");
	msg.run[0] = 10 << 2 | 3;
	message_bad(&msg, "run");
	msg.run[0] = 11 << 2 | 2;
	message_bad(&msg, "past its size");
	msg.run[0] = 9 << 2 | 2;
	msg.run[1] = 2 << 2 | 1;
	msg.object[0].n_run = 2;
	message_bad(&msg, "past its size");
	msg.run[1] = UINT64_MAX - 1;
	msg.object[0].n_run = 2;
	message_bad(&msg, "past its size");
	/* Three runs whose sum wraps to a small number. */
	msg.run[0] = msg.run[1] = msg.run[2] = UINT64_MAX / 4 << 2 | 1;
	msg.object[0].n_run = 3;
	message_bad(&msg, "past its size");
	msg.object[0].size = 0;
	message_bad(&msg, "past its size");
	msg.object[0].size = 9 * page_size();
	message_bad(&msg, "past its size");
	msg.object[0].size = 9 * page_size() + 1;
	message_ok(&msg);
}

static void test_wrong_objects(void **state)
{
	struct message msg;

	(void)state;
	message_init(&msg);
	msg.object[0].size = (uint64_t)INT64_MAX + 1;
	message_bad(&msg, "size");
	msg.object[0].size = UINT64_MAX;
	message_bad(&msg, "size");
	msg.object[0].size = INT64_MAX;
	message_ok(&msg);
	message_init(&msg);
	for (int kind = -1; kind < 6; kind += kind == 0 ? 4 : 1) {
		msg.object[0].kind = (ResidencyKind)kind;
		message_bad(&msg, "kind");
	}
	msg.image.n_object = 2;
	message_ok(&msg);
	msg.object[1].shmid = 5;
	message_bad(&msg, "twice");
	msg.image.n_object = 2;
	msg.object[1].shmid = 5;
	msg.object[1].kind = RESIDENCY_KIND__RK_ANON;
	message_bad(&msg, "twice");
	msg.image.n_object = 2;
	msg.object[1].shmid = 5;
	msg.object[1].kind = RESIDENCY_KIND__RK_SYSV;
	message_ok(&msg);
	message_init(&msg);
	msg.image.page_size = (uint32_t)(page_size() * 16);
	message_bad(&msg, "pages of");
	msg.image.page_size = 0;
	message_bad(&msg, "pages of");
}

static void test_wrong_refs(void **state)
{
	const uint64_t page = page_size();
	struct message msg;

	(void)state;
	message_init(&msg);
	msg.ref.pid = 0;
	message_bad(&msg, "pid");
	msg.ref.pid = (uint32_t)INT32_MAX + 1;
	message_bad(&msg, "pid");
	msg.ref.pid = INT32_MAX;
	message_ok(&msg);
	message_init(&msg);
	msg.ref.end = msg.ref.start;
	message_bad(&msg, "mapping");
	msg.ref.end = 0;
	message_bad(&msg, "mapping");
	msg.ref.has_start = msg.ref.has_end = 0;
	message_bad(&msg, "mapping");
	msg.ref.start++;
	message_bad(&msg, "mapping");
	msg.ref.end--;
	message_bad(&msg, "mapping");
	msg.ref.offset = 8;
	message_bad(&msg, "mapping");
	msg.ref.offset = UINT64_MAX / page * page;
	message_bad(&msg, "mapping");
	msg.ref.offset = INT64_MAX / page * page;
	message_bad(&msg, "mapping");
	msg.ref.end = UINT64_MAX / page * page;
	message_bad(&msg, "mapping");
	msg.ref.has_fd = 1;
	msg.ref.fd = (uint32_t)INT32_MAX + 1;
	message_bad(&msg, "descriptor");
	msg.ref.has_fd = 1;
	msg.ref.fd = 0;
	message_ok(&msg);
}

/* A later version may add fields: 100 to the image, 101 to an object. */
static void test_unknown_fields(void **state)
{
	uint8_t text[] = "later", number[] = { 42 };
	ProtobufCMessageUnknownField field[2] = {
		{ 100, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, 0, NULL },
		{ 101, PROTOBUF_C_WIRE_TYPE_VARINT, sizeof(number), number },
	};
	uint8_t prefixed[sizeof(text) + 1] = { sizeof(text) };
	struct message msg;

	(void)state;
	memcpy(prefixed + 1, text, sizeof(text));
	field[0].data = prefixed;
	field[0].len = sizeof(prefixed);
	message_init(&msg);
	msg.image.base.n_unknown_fields = 1;
	msg.image.base.unknown_fields = &field[0];
	msg.object[0].base.n_unknown_fields = 1;
	msg.object[0].base.unknown_fields = &field[1];
	msg.ref.base.n_unknown_fields = 2;
	msg.ref.base.unknown_fields = field;
	message_ok(&msg);
}

static void assert_harmless(const char *text)
{
	for (const char *c = text; *c; c++)
		assert_in_range((unsigned char)*c, ' ', 0x7e);
}

/* Names and sources go to logs and terminals. */
static void test_control_characters(void **state)
{
	static char text[256];
	struct shm_objects objects = { 0 };
	struct image_error error;
	struct image_info info;
	struct message msg;
	struct bytes image;

	(void)state;
	for (int first = 1; first < 256; first += 8) {
		for (int i = 0; i < 8; i++)
			text[i] = (char)(first + i < 128 ? first + i : 'x');
		message_init(&msg);
		msg.object[0].name = text;
		msg.image.source = text;
		image = wrap_message(&msg.image);
		assert_int_equal(image_decode(image.data, image.size, &objects, &info, &error), 0);
		assert_harmless(objects.object[0]->name);
		assert_harmless(info.source);
		objects_free(&objects);
		free(image.data);
	}
	/* CSI as one character: in UTF-8 it is 0xc2 0x9b. */
	message_init(&msg);
	msg.object[0].name = "a\xc2\x9b"
			     "31m";
	image = wrap_message(&msg.image);
	assert_accepted(&image, &objects);
	assert_null(strstr(objects.object[0]->name, "\xc2\x9b"));
	objects_free(&objects);
	free(image.data);
}

static void test_long_names(void **state)
{
	struct shm_objects objects = { 0 };
	char text[2000];
	struct message msg;
	struct bytes image;

	(void)state;
	memset(text, 'n', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	message_init(&msg);
	msg.object[0].name = text;
	msg.image.source = text;
	image = wrap_message(&msg.image);
	assert_accepted(&image, &objects);
	assert_int_equal(strlen(objects.object[0]->name), sizeof(objects.object[0]->name) - 1);
	objects_free(&objects);
	free(image.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_runs),	   cmocka_unit_test(test_wrong_objects),
		cmocka_unit_test(test_wrong_refs),	   cmocka_unit_test(test_unknown_fields),
		cmocka_unit_test(test_control_characters), cmocka_unit_test(test_long_names),
	};

	return RUN_TESTS(tests);
}
